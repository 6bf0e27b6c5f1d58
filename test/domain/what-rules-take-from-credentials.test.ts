/**
 * Keys, certificates, names and pins as rules take them from credentials: of the right type and complete, or not at all
 * (`docs/contract/wire.md#configuration`).
 */
import { describe, expect, it } from 'vitest';
import type { CredentialState } from '../../src/domain/credential/credential.js';
import {
  namesOfCredential,
  realityInbound,
  realityOutbound,
  spkiPins,
  tlsCertificate,
  x25519Material,
} from '../../src/domain/credential/material.js';
import { firstVersion } from '../../src/domain/resource/meta.js';
import { streams } from '../../src/kernel/event.js';
import * as f from '../support/fleet.js';

const at = '2025-01-01T00:00:00.000Z';
const id = f.credentialId;

/** Credentials as a fold has them, of which some fields are missing: no command writes such, a damaged log may. */
function credentials(...commands: readonly ReturnType<typeof f.createX25519>[]) {
  const states = commands.map(({ type: _, id: credential, ...fields }): CredentialState => ({
    ...fields,
    ...firstVersion(credential, at),
    overlap: null,
  }));
  const table = new Map(states.map((state) => [state.id, state]));
  return { get: (_: unknown, key: string) => table.get(key) as never };
}

const keys = f.createX25519('keys');
const reality = f.createReality('reality', 'keys');
const cert = f.createTlsCert('cert');
const all = credentials(keys, reality, cert);

const secret = (name: string) => ({
  secret: f.sealedKey(name),
  stream: streams.fleet,
  resource_id: id(name),
  field: 'private_key',
});

describe('rules take', () => {
  it('the key pair of an x25519 credential', () => {
    expect(x25519Material(all, id('keys'))).toEqual({ public_key: f.publicKey('keys'), private_key: secret('keys') });
  });

  it('both sides of a REALITY identity from it and the key pair that it stands over', () => {
    expect(realityInbound(all, id('reality'), ['names'])).toEqual({
      private_key: secret('keys'),
      server_names: ['names'],
      short_ids: ['0123'],
      target_host: 'target.example',
      target_port: 443,
    });
    expect(realityOutbound(all, id('reality'), 'name')).toEqual({
      public_key: f.publicKey('keys'),
      server_name: 'name',
      short_id: '0123',
    });
    expect(realityOutbound(credentials(keys, { ...reality, short_ids: [] }), id('reality'), 'name')).toMatchObject({
      short_id: '',
    });
  });

  it('a certificate with its key and names', () => {
    expect(tlsCertificate(all, id('cert'))).toEqual({
      credential_id: id('cert'),
      certificate_pem: 'PEM of cert',
      private_key_pem: secret('cert'),
      server_names: ['a.example'],
    });
    expect(spkiPins(all, id('cert'))).toEqual([f.pin('cert')]);
  });

  it('the names of a REALITY identity and of a certificate, and none of a key pair', () => {
    const names = ['reality', 'cert', 'keys', 'nowhere'].map((name) => namesOfCredential(all, id(name)));
    expect(names).toEqual([['a.example', 'b.example'], ['a.example'], [], []]);
  });
});

describe('rules take nothing from', () => {
  const [nowhere, x25519, overKeys, certificate] = [id('nowhere'), id('keys'), id('reality'), id('cert')];

  it.each<[string, ReturnType<typeof credentials>, readonly (string | undefined)[]]>([
    ['no credential', all, [undefined, undefined, undefined]],
    ['a credential that does not exist', all, [nowhere, nowhere, nowhere]],
    ['a credential of another type', all, [overKeys, certificate, x25519]],
    ['a credential of the third type', all, [certificate, x25519, overKeys]],
    [
      'a credential without its key',
      credentials({ ...keys, private_key: null }, reality, { ...cert, private_key: null }),
      [x25519, overKeys, certificate],
    ],
    [
      'a credential without its public half',
      credentials({ ...keys, public_key: null }, reality, { ...cert, certificate_pem: null }),
      [x25519, overKeys, certificate],
    ],
    [
      'a credential whose own reference leads nowhere',
      credentials(reality, { ...cert, certificate: null }),
      [x25519, overKeys, certificate],
    ],
    // Fields that belong to another type change nothing.
    [
      'a credential that only looks like another type',
      credentials(
        keys,
        { ...keys, id: id('looks like a certificate'), ...f.rotatedTo('x') },
        { ...cert, id: id('looks like keys'), public_key: f.publicKey('x') },
        { ...reality, id: id('looks like an identity'), key_type: 'tls_cert' },
      ),
      [id('looks like keys'), id('looks like an identity'), id('looks like a certificate')],
    ],
  ])('%s', (_, from, [pair, identity, tls]) => {
    expect(x25519Material(from, pair)).toBeUndefined();
    expect(realityInbound(from, identity, [])).toBeUndefined();
    expect(realityOutbound(from, identity, '')).toBeUndefined();
    expect(tlsCertificate(from, tls)).toBeUndefined();
  });

  it.each([{ target_host: null }, { target_port: null }])(
    'an identity to listen with that has no target: %o',
    (lost) => {
      expect(realityInbound(credentials(keys, { ...reality, ...lost }), overKeys, [])).toBeUndefined();
    },
  );

  it('a missing certificate: no pins, no names', () => {
    const from = credentials(keys, { ...cert, certificate: null });
    expect([undefined, nowhere, x25519, certificate].map((one) => spkiPins(from, one))).toEqual([[], [], [], []]);
    expect(namesOfCredential(from, certificate)).toEqual([]);
  });
});
