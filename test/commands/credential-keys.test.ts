/** Private keys of credentials: made or read, and sealed. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createCredentialHandlers } from '../../src/commands/credentials.js';
import type { CommandHandlers, CredentialChanges, NewCredential } from '../../src/commands/handlers-port.js';
import { tuning } from '../../src/commands/tuning.js';
import type { CredentialState } from '../../src/domain/credential/credential.js';
import { streams } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import { x25519PairOf } from '../../src/kernel/crypto/crypto.js';
import type { Keyring } from '../../src/security/keyring.js';
import { testKeyring } from '../support/keyring.js';
import { clearTextIn } from '../support/clear-text.js';
import {
  actor,
  createCommandFixture,
  refusalOf,
  type CommandFixture,
  type FleetGateway,
} from '../support/command-fixture.js';
import { authority, issue } from '../support/x509.js';

const day = 24 * 3600 * 1000;
let fixture: CommandFixture;
let gateway: FleetGateway;
let keyring: Keyring;
let credentials: CommandHandlers['credentials'];

beforeEach(async () => {
  fixture = await createCommandFixture();
  gateway = await fixture.gateway();
  keyring = testKeyring();
  const { clock } = fixture;
  credentials = createCredentialHandlers({ gateway, keyring, clock, ids: randomIds });
});
afterEach(() => fixture.close());

const context = { actor, requestId: 'r' };
const from = (ms: number) => new Date(fixture.clock.now() + ms);

async function create(fields: NewCredential): Promise<CredentialState> {
  const outcome = await credentials.create(context, fields);
  if (outcome.kind !== 'done') throw new Error(outcome.kind);
  return outcome.result;
}

async function update(id: string, changes: CredentialChanges): Promise<CredentialState> {
  const outcome = await credentials.update(context, id, undefined, changes);
  if (outcome.kind !== 'done') throw new Error(outcome.kind);
  return outcome.result;
}

/** The private key as a node would get it, from the log alone. */
async function openedKey(id: string): Promise<Buffer> {
  const stored = (await fixture.fold()).tables.credential.get(id)?.private_key;
  const place = { stream: streams.fleet, resourceId: id, field: 'private_key' };
  const opened = await keyring.open(stored!, place);
  if (opened.kind !== 'opened') throw new Error(opened.kind);
  // It opens nowhere else.
  expect(await keyring.open(stored!, { ...place, resourceId: 'another' })).toMatchObject({ kind: 'refused' });
  return Buffer.from(opened.plaintext);
}

describe('an x25519 key', () => {
  it('is generated, and sealed so that its public half is the one that is shown', async () => {
    const { id, public_key } = await create({ name: 'keys', key_type: 'x25519' });
    const key = await openedKey(id);
    expect(Buffer.from(x25519PairOf(key).publicKey).toString('base64url')).toBe(public_key);
    expect(clearTextIn([await fixture.log(), gateway.fleet], [key])).toEqual([]);
  });

  it('is imported', async () => {
    const key = Buffer.alloc(32, 5);
    const { id } = await create({ name: 'keys', key_type: 'x25519', private_key: key.toString('base64url') });
    expect(await openedKey(id)).toEqual(key);
    expect(clearTextIn([await fixture.log(), gateway.fleet], [key])).toEqual([]);
  });

  it('is replaced by another one each time that none is given', async () => {
    const first = await create({ name: 'keys', key_type: 'x25519' });
    const second = await update(first.id, { private_key: null });
    const third = await update(first.id, { private_key: null });
    expect(new Set([first, second, third].map(({ public_key }) => public_key)).size).toBe(3);
    expect(third.version).toBe(3);
  });
});

describe('a certificate', () => {
  it('is sealed with its key, which is stored as PKCS #8', async () => {
    const made = await issue({ notBefore: from(-day), notAfter: from(day) });
    const { id } = await create({
      name: 'cert',
      key_type: 'tls_cert',
      certificate_pem: made.cert,
      private_key_pem: made.key,
    });
    expect((await openedKey(id)).toString()).toBe(made.key);
    const [line = ''] = made.key.split('\n').slice(2);
    expect(clearTextIn([await fixture.log(), gateway.fleet], [line])).toEqual([]);
  });

  it('is made self-signed, for a year or for as long as it is asked', async () => {
    const made = await create({ name: 'self', key_type: 'tls_cert', self_signed: { common_name: 'a.example' } });
    expect(made.certificate).toMatchObject({ subject_alt_names: ['a.example'], self_signed: true });
    expect(Date.parse(made.certificate!.not_after)).toBe(fixture.clock.now() + 365 * day);
    expect(Date.parse(made.certificate!.not_before)).toBe(fixture.clock.now() - tuning.certificateClockSkewMs);
    const asked = { common_name: 'gateway 7', subject_alt_names: ['b.example', '*.c.example'], days: 30 };
    const again = await update(made.id, { self_signed: asked });
    expect(again.certificate).toMatchObject({
      subject: 'CN=gateway 7',
      subject_alt_names: ['b.example', '*.c.example'],
      not_after: new Date(fixture.clock.now() + 30 * day).toISOString(),
    });
    expect(again.overlap?.spki_sha256).toBe(made.certificate?.spki_sha256);
    expect((await openedKey(made.id)).toString()).toContain('PRIVATE KEY');
  });

  it('can be renewed alone when it has the same key, and needs its key when it has another', async () => {
    const ca = await authority();
    const times = { issuer: ca, notBefore: from(-day), notAfter: from(day) };
    const first = await issue(times);
    const second = await issue({ ...times, sameKeyAs: first, names: ['b.example'] });
    const other = await issue(times);
    const created = await create({
      name: 'cert',
      key_type: 'tls_cert',
      certificate_pem: first.cert,
      private_key_pem: first.key,
    });
    const renewed = await update(created.id, { certificate_pem: second.cert });
    expect(renewed.private_key).toEqual(created.private_key);
    expect(renewed.certificate?.subject_alt_names).toEqual(['b.example']);
    const refused = await refusalOf(update(created.id, { certificate_pem: other.cert }));
    expect(refused.message).toContain('certificate_pem: expected a certificate of the key that the credential has');
    const rotated = await update(created.id, { certificate_pem: other.cert, private_key_pem: other.key });
    expect(rotated.private_key).not.toEqual(created.private_key);
  });

  it.each([
    ['has expired', -2 * day, -1, 'certificate_pem: expected certificates that have not expired'],
    ['begins in an hour', 3600_000, day, 'certificate_pem: expected a certificate that is valid now'],
  ])('that %s is refused', async (_what, notBefore, notAfter, sentence) => {
    const made = await issue({ notBefore: from(notBefore), notAfter: from(notAfter) });
    const fields = { certificate_pem: made.cert, private_key_pem: made.key };
    const refused = await refusalOf(create({ name: 'cert', key_type: 'tls_cert', ...fields }));
    expect(refused.code).toBe('invalid_request');
    expect(refused.message).toContain(sentence);
  });

  it('that an authority with a clock ahead has just issued is taken', async () => {
    const made = await issue({ notBefore: from(60_000), notAfter: from(day) });
    const fields = { certificate_pem: made.cert, private_key_pem: made.key };
    expect((await create({ name: 'cert', key_type: 'tls_cert', ...fields })).version).toBe(1);
  });

  it('whose authority has expired is refused', async () => {
    const ca = await issue({ name: 'ca', names: [], notBefore: from(-2 * day), notAfter: from(-1) });
    const made = await issue({ issuer: ca, notBefore: from(-day), notAfter: from(day) });
    const fields = { certificate_pem: made.cert + ca.cert, private_key_pem: made.key };
    const refused = await refusalOf(create({ name: 'cert', key_type: 'tls_cert', ...fields }));
    expect(refused.message).toContain('one did at');
  });

  it('with the key of another one is refused', async () => {
    const times = { notBefore: from(-day), notAfter: from(day) };
    const [made, other] = [await issue(times), await issue(times)];
    const fields = { certificate_pem: made.cert, private_key_pem: other.key };
    const refused = await refusalOf(create({ name: 'cert', key_type: 'tls_cert', ...fields }));
    expect(refused.message).toContain('private_key_pem: expected the key of the first certificate');
  });
});

describe('a private key that a credential has already', () => {
  it('stays as it was sealed', async () => {
    const private_key = Buffer.alloc(32, 9).toString('base64url');
    const made = await create({ name: 'keys', key_type: 'x25519', private_key });
    const same = await update(made.id, { private_key });
    expect([same.version, same.private_key]).toEqual([1, made.private_key]);
  });
});
