/** Credentials over REST: all types, and every body that is refused (`docs/contract/rest.md#credentials`). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { streams } from '../../src/kernel/event.js';
import { clearTextIn } from '../support/clear-text.js';
import { realityOver, startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';
import { authority, issue, type IssuedCertificate } from '../support/x509.js';

let rest: RestFixture;
let ca: IssuedCertificate;
let leaf: IssuedCertificate;
let other: IssuedCertificate;
/** A credential of each type, which refusals are tried on. */
let keys: JsonData;
let cert: JsonData;

beforeAll(async () => {
  rest = await startRest();
  ca = await authority();
  [leaf, other] = [await issue({ issuer: ca }), await issue({ issuer: ca })];
  keys = await post({ name: 'fixed keys', key_type: 'x25519' });
  await post(realityOver(keys.id, 'fixed reality', ['www.example']));
  cert = await post({ name: 'fixed cert', key_type: 'tls_cert', self_signed: { common_name: 'a.example' } });
});
afterAll(() => rest.close());

const post = (body: object): Promise<JsonData> => rest.data('POST', '/api/credentials', { body });
const put = (id: string, body: object): Promise<JsonData> => rest.data('PUT', `/api/credentials/${id}`, { body });
const get = (id: string): Promise<JsonData> => rest.data('GET', `/api/credentials/${id}`);

async function refusal(method: string, url: string, body?: object): Promise<readonly [status: number, error: string]> {
  const answer = await rest.call(method, url, body === undefined ? {} : { body });
  return [answer.statusCode, answer.json().error];
}

const common = {
  id: expect.any(String),
  public_key: null,
  x25519_credential_id: null,
  server_names: [],
  short_ids: [],
  target_host: null,
  target_port: null,
  certificate: null,
  in_use_by: [],
  managed_by: null,
  created_at: expect.any(String),
  updated_at: expect.any(String),
  version: 1,
};

describe('an x25519 credential', () => {
  it('is generated, anew whenever its private key is set to null', async () => {
    const made = await post({ name: 'generated', key_type: 'x25519' });
    expect(made).toEqual({
      ...common,
      name: 'generated',
      key_type: 'x25519',
      public_key: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
    });
    const replaced = await put(made.id, { private_key: null });
    expect(replaced).toEqual({
      ...made,
      public_key: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      updated_at: expect.any(String),
      version: 2,
    });
    expect(replaced.public_key).not.toBe(made.public_key);
    expect(await get(made.id)).toEqual(replaced);
  });
});

describe('a reality credential', () => {
  it('stands over an x25519 credential, is edited, and shows as its user', async () => {
    const over = await post({ name: 'over', key_type: 'x25519' });
    const names = ['WWW.Example', 'b.example'];
    const made = await post(realityOver(over.id, 'Site', names, { short_ids: ['', 'ABCDEF'] }));
    const { id } = made;
    expect(made).toEqual({
      ...common,
      name: 'Site',
      key_type: 'reality',
      public_key: over.public_key,
      x25519_credential_id: over.id,
      server_names: ['www.example', 'b.example'],
      short_ids: ['', 'abcdef'],
      target_host: 'www.example',
      target_port: 443,
    });
    expect((await get(over.id)).in_use_by).toEqual([{ type: 'credential', id, name: 'Site' }]);
    const edit = { name: 'Site 2', short_ids: ['01'], target_host: '2001:DB8::1', target_port: 8443 };
    expect(await put(id, edit)).toMatchObject({ ...edit, target_host: '2001:db8::1', version: 2 });
    expect((await get(over.id)).in_use_by).toEqual([{ type: 'credential', id, name: 'Site 2' }]);
    expect(await refusal('DELETE', `/api/credentials/${over.id}`)).toEqual([
      409,
      `conflict: the credential "over" is still used by credential "Site 2" (${id})`,
    ]);
    const elsewhere = await post({ name: 'elsewhere', key_type: 'x25519' });
    await put(id, { x25519_credential_id: elsewhere.id });
    expect((await get(id)).public_key).toBe(elsewhere.public_key);
    expect((await get(over.id)).in_use_by).toEqual([]);
    expect((await get(elsewhere.id)).in_use_by).toEqual([{ type: 'credential', id, name: 'Site 2' }]);
    await rest.data('DELETE', `/api/credentials/${over.id}`);
    await rest.data('DELETE', `/api/credentials/${id}`);
    expect((await get(elsewhere.id)).in_use_by).toEqual([]);
  });
});

describe('a tls_cert credential', () => {
  it('is uploaded with its chain, renewed, and rotated', async () => {
    const made = await post({
      name: 'uploaded',
      key_type: 'tls_cert',
      certificate_pem: leaf.cert + ca.cert,
      private_key_pem: leaf.key,
    });
    expect(made).toEqual({
      ...common,
      name: 'uploaded',
      key_type: 'tls_cert',
      certificate: {
        subject: 'CN=a.example',
        issuer: 'CN=ca.example',
        subject_alt_names: ['a.example'],
        not_before: expect.stringMatching(/^\d{4}-.*\.000Z$/),
        not_after: expect.stringMatching(/^\d{4}-.*\.000Z$/),
        serial_number: expect.stringMatching(/^[0-9a-f]+$/),
        fingerprint_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        spki_sha256: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/),
        self_signed: false,
      },
    });
    const renewed = await issue({ issuer: ca, sameKeyAs: leaf, names: ['c.example'] });
    const kept = await put(made.id, { certificate_pem: renewed.cert });
    expect(kept.certificate).toMatchObject({
      subject_alt_names: ['c.example'],
      spki_sha256: made.certificate.spki_sha256,
    });
    const rotated = await put(made.id, { certificate_pem: other.cert, private_key_pem: other.key });
    expect(rotated.certificate.spki_sha256).not.toBe(made.certificate.spki_sha256);
    expect(rotated.version).toBe(3);
    expect(await put(made.id, { certificate_pem: other.cert, private_key_pem: other.key })).toEqual(rotated);
  });

  it('is made self-signed, and can be made again', async () => {
    const self_signed = { common_name: 'A.Example', subject_alt_names: ['B.example', '*.c.example'], days: 10 };
    const made = await post({ name: 'self-signed', key_type: 'tls_cert', self_signed });
    expect(made.certificate).toMatchObject({
      subject: 'CN=A.Example',
      issuer: 'CN=A.Example',
      subject_alt_names: ['b.example', '*.c.example'],
      self_signed: true,
    });
    const again = await put(made.id, { self_signed: { common_name: 'a.example' } });
    expect(again.certificate.subject_alt_names).toEqual(['a.example']);
    expect(again.certificate.spki_sha256).not.toBe(made.certificate.spki_sha256);
  });
});

describe('the list', () => {
  it('holds all types, or one, in pages', async () => {
    const all = await rest.data('GET', '/api/credentials?page_size=500');
    const types = ['x25519', 'reality', 'tls_cert'];
    let total = 0;
    for (const type of types) {
      const some = await rest.data('GET', `/api/credentials?key_type=${type}&page_size=500`);
      expect(some.items).toEqual(all.items.filter((one: JsonData) => one.key_type === type));
      expect(some.total).toBe(some.items.length);
      total += some.total;
    }
    expect(total).toBe(all.total);
    const [first, second] = await Promise.all(
      [1, 2].map((page) => rest.data('GET', `/api/credentials?key_type=x25519&page_size=1&page=${page}&sort=-name`)),
    );
    const sorted = all.items.filter((one: JsonData) => one.key_type === 'x25519').toReversed();
    expect([...first.items, ...second.items]).toEqual(sorted.slice(0, 2));
    const named = await rest.data('GET', '/api/credentials?key_type=tls_cert&q=FIXED');
    expect(named.items.map((one: JsonData) => one.name)).toEqual(['fixed cert']);
  });
});

describe('a body is refused:', () => {
  const bytes = (count: number) => Buffer.alloc(count, 1).toString('base64url');
  const x25519 = { name: 'new', key_type: 'x25519' };
  const tls = { name: 'new', key_type: 'tls_cert' };
  const selfSigned = (fields: object) => ({ ...tls, self_signed: { common_name: 'a.example', ...fields } });
  const over = (fields: object) => realityOver(keys.id, 'new', ['www.example'], fields);
  const nobody = '6f1c1f4e-8d3a-4b5e-9c39-1d2f3a4b5c6d';

  const creations: readonly (readonly [what: string, body: () => object, ...parts: readonly string[]])[] = [
    ['a key of 31 bytes', () => ({ ...x25519, private_key: bytes(31) }), 'private_key: expected base64url of 32 bytes'],
    [
      'a key that is no base64url',
      () => ({ ...x25519, private_key: `${bytes(32).slice(1)}+` }),
      'private_key: expected',
    ],
    [
      'an x25519 key with names',
      () => ({ ...x25519, server_names: ['a.example'] }),
      'server_names: not a field of this',
    ],

    ['one with a wildcard', () => over({ server_names: ['*.example'] }), 'server_names[0]: expected a DNS name'],
    [
      'one with a name twice',
      () => over({ server_names: ['a.example', 'A.example'] }),
      'server_names[1]: expected each name once',
    ],
    [
      'a short id of odd length',
      () => over({ short_ids: ['ab', 'abc'] }),
      'short_ids[1]: expected hexadecimal of an even number of digits, at most 16',
    ],
    [
      'a short id of 18 digits',
      () => over({ short_ids: ['ab'.repeat(9)] }),
      'short_ids[0]: expected hexadecimal of an even number',
    ],
    ['a short id that is no hexadecimal', () => over({ short_ids: ['zz'] }), 'short_ids[0]: expected hexadecimal'],
    ['a short id twice', () => over({ short_ids: ['ab', 'AB'] }), 'short_ids[1]: expected each short id once'],
    ['a target host with a port', () => over({ target_host: 'a.example:443' }), 'target_host: expected a host name'],
    [
      'a reality identity with a key of its own',
      () => over({ private_key: bytes(32) }),
      'private_key: not a field of this',
    ],

    [
      'a certificate credential without anything',
      () => tls,
      'certificate_pem: required, expected PEM certificates, or self_signed',
    ],
    [
      'a certificate without a key',
      () => ({ ...tls, certificate_pem: leaf.cert }),
      'private_key_pem: required, expected the PEM key',
    ],
    [
      'a key without a certificate',
      () => ({ ...tls, private_key_pem: leaf.key }),
      'certificate_pem: required, expected the certificate',
    ],
    [
      'a certificate that is no PEM',
      () => ({ ...tls, certificate_pem: 'x', private_key_pem: leaf.key }),
      'certificate_pem: expected PEM certificates',
    ],
    [
      'a key in the certificate',
      () => ({ ...tls, certificate_pem: leaf.cert + leaf.key, private_key_pem: leaf.key }),
      'certificate_pem: expected',
      'a block that is not a certificate',
    ],
    [
      'a key that is no PEM',
      () => ({ ...tls, certificate_pem: leaf.cert, private_key_pem: 'x' }),
      'private_key_pem: expected one PEM private key',
    ],
    [
      'a certificate both given and made',
      () => ({ ...selfSigned({}), certificate_pem: leaf.cert }),
      'certificate_pem: expected none beside self_signed',
    ],
    [
      'a key beside self_signed',
      () => ({ ...selfSigned({}), private_key_pem: leaf.key }),
      'private_key_pem: expected none beside self_signed',
    ],
    [
      'a common name that is no DNS name, alone',
      () => selfSigned({ common_name: 'my gateway' }),
      'self_signed.common_name: expected a DNS name, because there are no subject_alt_names',
    ],
    [
      'a name in self_signed that is none',
      () => selfSigned({ subject_alt_names: ['a b'] }),
      'self_signed.subject_alt_names[0]: expected a DNS name',
    ],
    [
      'a certificate with server names',
      () => ({ ...selfSigned({}), server_names: ['a.example'] }),
      'server_names: not a field of this',
    ],
  ];

  it.each(creations.map(([what, body, ...sentences]) => ({ what, body, sentences })))(
    'POST with $what',
    async ({ body, sentences }) => {
      const [first = '', ...parts] = sentences;
      const before = await rest.position();
      const [status, error] = await refusal('POST', '/api/credentials', body());
      expect([status, error]).toEqual([400, expect.stringContaining(first)]);
      for (const part of parts) expect(error).toContain(part);
      expect(error).toMatch(new RegExp(`^invalid_request: ${first.split(':')[0]?.replaceAll(/[[\].]/g, '\\$&')}`));
      expect(await rest.position()).toBe(before);
    },
  );

  const updates: readonly (readonly [
    what: string,
    id: () => string,
    body: () => object,
    ...parts: readonly string[],
  ])[] = [
    [
      'names for an x25519 key',
      () => keys.id,
      () => ({ server_names: ['a.example'] }),
      'server_names: expected none, because key_type of this credential is x25519',
    ],
    [
      'a key alone',
      () => cert.id,
      () => ({ private_key_pem: leaf.key }),
      'certificate_pem: required, expected the certificate of private_key_pem',
    ],
    [
      'fields of two types',
      () => cert.id,
      () => ({ server_names: ['a.example'], certificate_pem: leaf.cert }),
      'certificate_pem: expected fields of one key_type, server_names is one of another',
    ],
  ];

  it.each(updates.map(([what, id, body, ...sentences]) => ({ what, id, body, sentences })))(
    'PUT with $what',
    async ({ id, body, sentences }) => {
      const [first = '', ...parts] = sentences;
      const before = await rest.position();
      const [status, error] = await refusal('PUT', `/api/credentials/${id()}`, body());
      expect([status, error]).toEqual([400, expect.stringContaining(first)]);
      for (const part of parts) expect(error).toContain(part);
      expect(await rest.position()).toBe(before);
    },
  );

  it('PUT and DELETE of one that does not exist are a 404, of another version a 412, before what the body does not fit', async () => {
    const body = { server_names: ['a.example'] };
    expect((await refusal('PUT', `/api/credentials/${nobody}`, body))[0]).toBe(404);
    expect((await refusal('PUT', '/api/credentials/x', body))[0]).toBe(404);
    const stale = { body, headers: { 'if-match': '"99"' } };
    expect((await rest.call('PUT', `/api/credentials/${keys.id}`, stale)).statusCode).toBe(412);
    expect((await refusal('DELETE', `/api/credentials/${nobody}`))[0]).toBe(404);
  });
});

it('a private key is in no answer, log line, event, read model or audit entry', async () => {
  const raw = Buffer.alloc(32, 0xc5);
  const private_key = raw.toString('base64url');
  const made = await issue({ algorithm: 'ed25519' });
  const pem = { certificate_pem: made.cert, private_key_pem: made.key };
  const line = made.key.split('\n')[1] ?? '';
  const answers: unknown[] = [];
  const call = async (method: string, url: string, body?: object): Promise<JsonData> => {
    const answer = await rest.call(method, url, body === undefined ? {} : { body });
    answers.push(answer.body, answer.headers);
    return answer.json().data;
  };
  const x = await call('POST', '/api/credentials', { name: 'secret x', key_type: 'x25519', private_key });
  const c = await call('POST', '/api/credentials', { name: 'secret c', key_type: 'tls_cert', ...pem });
  // Refused in every way that comes after the body was read.
  await call('POST', '/api/credentials', { name: 'secret x', key_type: 'x25519', private_key });
  await call('PUT', `/api/credentials/${c.id}`, { private_key });
  await call('PUT', `/api/credentials/${x.id}`, pem);
  await call('PUT', `/api/credentials/${c.id}`, { certificate_pem: leaf.cert, private_key_pem: made.key });
  await call('POST', '/api/credentials', { name: 'n', key_type: 'x25519', private_key: `${private_key}A` });
  await call('PUT', `/api/credentials/${c.id}`, { certificate_pem: leaf.cert, private_key_pem: leaf.key });
  await call('PUT', `/api/credentials/${c.id}`, pem);
  await call('DELETE', `/api/credentials/${x.id}`);
  await call('GET', `/api/credentials/${c.id}`);
  await call('GET', '/api/credentials?page_size=500');
  const audit = await call('GET', '/api/audit?resource_type=credential&page_size=500');
  const log = await rest.log(streams.fleet);
  const shownStates = rest.deps.fleet.resources.credential.list({ page: 1, pageSize: 500, sort: 'name' }).items;

  expect(log.some(({ data }) => data['credential_id'] === c.id && data['private_key'] !== null)).toBe(true);
  expect(clearTextIn([answers, log, rest.logged, shownStates], [raw, private_key, line])).toEqual([]);
  // Nor are the sealed keys shown.
  const sealed = log.flatMap(({ data }) => JSON.stringify(data).match(/"ct":"[^"]+"/g) ?? []);
  expect(sealed.length).toBeGreaterThan(3);
  const shown = JSON.stringify([answers, shownStates]);
  for (const one of sealed) expect(shown.replaceAll('\\', '')).not.toContain(one);
  expect(shownStates.every((one) => one.private_key === null)).toBe(true);

  const ofX = audit.items.filter((entry: JsonData) => entry.resource.id === x.id);
  expect(ofX.map((entry: JsonData) => [entry.action, entry.resource.name])).toEqual([
    ['credential.delete', 'secret x'],
    ['credential.create', 'secret x'],
  ]);
  expect(ofX[1].changes).toContainEqual({ path: 'private_key', before: null, after: '***' });
  const rotation = audit.items.find(
    (entry: JsonData) => entry.resource.id === c.id && entry.action === 'credential.update',
  );
  expect(rotation.changes).toContainEqual({ path: 'private_key', before: '***', after: '***' });
  expect(rotation).toMatchObject({ revertible: false, not_revertible_because: expect.stringContaining('replaced') });
});
