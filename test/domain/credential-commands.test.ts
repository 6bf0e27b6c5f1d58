/** Commands about credentials (`docs/contract/rest.md#credentials`, `docs/contract/domain.md#l4-chain`). */
import { describe, expect, it } from 'vitest';
import { describeCommand } from '../../src/domain/audit/describe.js';
import { spkiPins } from '../../src/domain/credential/material.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { limits } from '../../src/kernel/limits.js';
import {
  certificate,
  createReality,
  createTlsCert,
  createX25519,
  credentialId,
  deleteCredential,
  endOverlap,
  given,
  perform,
  pin,
  publicKey,
  rotatedTo,
  sealed,
  sealedKey,
  updateCredential,
  type Outcome,
} from '../support/fleet.js';

const credentialIn = (fleet: Fleet, name: string) => fleet.tables.credential.get(credentialId(name))!;
const changesIn = ({ performed }: Outcome): readonly string[] => {
  const event = performed.kind === 'written' ? performed.events[0] : undefined;
  return event?.type === 'CredentialUpdated' ? Object.keys(event.data.changes) : [];
};

describe('a reality credential', () => {
  it('needs an x25519 credential that exists', () => {
    given()
      .when(createReality('r', 'keys'))
      .thenRefused('invalid_request', 'x25519_credential_id', 'there is no credential ');
  });

  it.each([
    ['tls_cert', createTlsCert('other')],
    ['reality', createReality('other', 'keys')],
  ])('does not stand over one of key_type %s', (type, other) => {
    const { when } = given(createX25519('keys'), other);
    when(createReality('r', 'other')).thenRefused(
      'invalid_request',
      'x25519_credential_id',
      'expected the id of a credential of key_type x25519',
      `"other" has key_type ${type}`,
    );
  });

  it('can stand over another x25519 credential later, but over no other type', () => {
    const { fleet, when } = given(
      createX25519('one'),
      createX25519('two'),
      createReality('r', 'one'),
      createTlsCert('cert'),
    );
    when(updateCredential('r', { x25519_credential_id: credentialId('cert') })).thenRefused(
      'invalid_request',
      'x25519_credential_id',
    );
    when(updateCredential('r', { x25519_credential_id: credentialId('two') })).thenAccepted();
    expect([...fleet.referrersOf('credential', credentialId('one'))]).toEqual([]);
    expect([...fleet.referrersOf('credential', credentialId('two'))]).toEqual([`credential/${credentialId('r')}`]);
  });

  it('keeps its x25519 credential from being deleted', () => {
    const { when } = given(createX25519('keys'), createReality('r', 'keys'));
    when(deleteCredential('keys')).thenRefused('conflict', 'credential "r"');
    when(deleteCredential('r')).thenAccepted();
    when(deleteCredential('keys')).thenAccepted();
  });
});

describe('names', () => {
  it('are unique among credentials of all types', () => {
    const { when } = given(createX25519('Keys'), createX25519('other'));
    when(createTlsCert('keys')).thenRefused('conflict', 'name: "keys"');
    when(updateCredential('other', { name: 'KEYS' })).thenRefused('conflict', 'name: "KEYS"');
  });
});

describe('an update', () => {
  it.each([
    ['x25519', 'server_names', { server_names: ['a.example'] }],
    ['x25519', 'certificate_pem, self_signed', rotatedTo('new')],
    ['tls_cert', 'private_key', { public_key: publicKey('new'), private_key: sealedKey('new') }],
    ['tls_cert', 'target_port', { target_port: 1 }],
    ['reality', 'private_key', { public_key: publicKey('new'), private_key: sealedKey('new') }],
    ['reality', 'certificate_pem', rotatedTo('new')],
  ])('of a credential of key_type %s refuses %s', (type, field, fields) => {
    const { when } = given(createX25519('x25519'), createReality('reality', 'x25519'), createTlsCert('tls_cert'));
    when(updateCredential(type, fields)).thenRefused(
      'invalid_request',
      field,
      `key_type of this credential is ${type}`,
    );
  });

  it('to the key that an x25519 credential has changes nothing, however it is sealed', () => {
    const { when } = given(createX25519('keys'));
    when(updateCredential('keys', { public_key: publicKey('keys'), private_key: sealedKey('again') })).thenNothing();
  });

  it('to another key replaces both halves', () => {
    const { when } = given(createX25519('keys'));
    const outcome = when(updateCredential('keys', { public_key: publicKey('new'), private_key: sealedKey('new') }));
    expect(changesIn(outcome)).toEqual(['public_key', 'private_key']);
  });

  it('to a certificate alone keeps the key, which must be its own', () => {
    const { when, fleet } = given(createTlsCert('cert'));
    const renewed = { certificate_pem: 'renewed', certificate: certificate('cert', { serial_number: '02' }) };
    expect(changesIn(when(updateCredential('cert', renewed)))).toEqual(['certificate_pem', 'certificate']);
    expect(credentialIn(fleet, 'cert').private_key).toEqual(sealedKey('cert'));
    when(updateCredential('cert', { certificate_pem: 'other', certificate: certificate('other') })).thenRefused(
      'invalid_request',
      'certificate_pem',
      'of the key that the credential has',
    );
  });

  it('to a certificate with the key that it has keeps the key as it is sealed', () => {
    const { when } = given(createTlsCert('cert'));
    const again = { ...rotatedTo('cert', { serial_number: '02' }), private_key: sealedKey('again') };
    expect(changesIn(when(updateCredential('cert', again)))).toEqual(['certificate']);
  });
});

describe('the pins of a certificate', () => {
  it('are those of the new and of the former key for ten minutes after the key changes', () => {
    const { fleet, when } = given(createTlsCert('cert'));
    expect(spkiPins(fleet, credentialId('cert'))).toEqual([pin('cert')]);
    when(updateCredential('cert', rotatedTo('new'))).thenAccepted();
    expect(spkiPins(fleet, credentialId('cert'))).toEqual([pin('new'), pin('cert')]);
    const { overlap, updated_at } = credentialIn(fleet, 'cert');
    expect(Date.parse(overlap!.ends_at) - Date.parse(updated_at)).toBe(limits.fleet.pinOverlapMs);
    when(endOverlap('cert')(fleet)).thenAccepted();
    expect(spkiPins(fleet, credentialId('cert'))).toEqual([pin('new')]);
  });

  it('stay as they are when a certificate is renewed with the same key', () => {
    const { fleet, when } = given(createTlsCert('cert'), updateCredential('cert', rotatedTo('new')));
    const before = credentialIn(fleet, 'cert').overlap;
    when(updateCredential('cert', { certificate: certificate('new', { serial_number: '02' }) })).thenAccepted();
    expect(credentialIn(fleet, 'cert').overlap).toEqual(before);
  });

  it('after a second change are those of the last two keys, for another ten minutes', () => {
    const { fleet, when } = given(createTlsCert('cert'), updateCredential('cert', rotatedTo('second')));
    const first = credentialIn(fleet, 'cert').overlap!;
    const ending = endOverlap('cert')(fleet);
    when(updateCredential('cert', rotatedTo('third'))).thenAccepted();
    expect(spkiPins(fleet, credentialId('cert'))).toEqual([pin('third'), pin('second')]);
    expect(Date.parse(credentialIn(fleet, 'cert').overlap!.ends_at)).toBeGreaterThan(Date.parse(first.ends_at));
    // The end of the first overlap does not end the second one.
    when(ending).thenNothing();
  });

  it('are told apart once only: a second instance that ends an overlap finds nothing to do', () => {
    const { fleet, when } = given(createTlsCert('cert'), updateCredential('cert', rotatedTo('new')));
    const ending = endOverlap('cert')(fleet);
    when(ending).thenAccepted();
    when(ending).thenNothing();
    when(deleteCredential('cert')).thenAccepted();
    when(ending).thenNothing();
  });

  it('of an x25519 or reality credential have no overlap: they change at once', () => {
    const { fleet, when } = given(createX25519('keys'), createReality('r', 'keys'));
    when(updateCredential('keys', { public_key: publicKey('new'), private_key: sealedKey('new') })).thenAccepted();
    expect([credentialIn(fleet, 'keys').overlap, credentialIn(fleet, 'r').overlap]).toEqual([null, null]);
  });
});

describe('the audit of a credential', () => {
  const auditOf = (fleet: Fleet, command: Parameters<typeof perform>[1]) => {
    const performed = perform(fleet, command);
    if (performed.kind !== 'written') throw new Error(JSON.stringify(performed));
    expect(JSON.stringify(describeCommand(performed.command))).not.toContain(sealed.ct);
    return describeCommand(performed.command)!;
  };

  it('has the fields of its type, and no key', () => {
    const { fleet } = given();
    expect(auditOf(fleet, createX25519('keys'))).toMatchObject({
      action: 'credential.create',
      changes: [
        { path: 'name', before: null, after: 'keys' },
        { path: 'key_type', before: null, after: 'x25519' },
        { path: 'public_key', before: null, after: publicKey('keys') },
        { path: 'private_key', before: null, after: '***' },
      ],
      notRevertibleBecause: null,
    });
    const deleted = auditOf(fleet, deleteCredential('keys'));
    expect(deleted.changes).toContainEqual({ path: 'private_key', before: '***', after: null });
  });

  it.each([
    ['a key', createX25519('c'), { public_key: publicKey('new'), private_key: sealedKey('new') }, false],
    ['a certificate', createTlsCert('c'), rotatedTo('new'), false],
    [
      'a certificate of the same key',
      createTlsCert('c'),
      { certificate: certificate('c', { serial_number: '2' }) },
      false,
    ],
    ['a name', createTlsCert('c'), { name: 'renamed' }, true],
  ])('says whether the change of %s can be reverted', (_what, create, fields, revertible) => {
    const { fleet } = given(create);
    const entry = auditOf(fleet, updateCredential('c', fields));
    expect(entry.action).toBe('credential.update');
    expect(entry.notRevertibleBecause === null).toBe(revertible);
  });

  it('has an entry for the end of an overlap, which cannot be reverted', () => {
    const { fleet } = given(createTlsCert('cert'), updateCredential('cert', rotatedTo('new')));
    expect(auditOf(fleet, endOverlap('cert')(fleet))).toMatchObject({
      action: 'credential.update',
      changes: [{ path: 'former_spki_sha256', before: pin('cert'), after: null }],
      notRevertibleBecause: expect.stringContaining('overlap'),
    });
  });
});
