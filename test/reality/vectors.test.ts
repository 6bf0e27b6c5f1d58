/** REALITY against vectors that other code made from its description. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { authKeyOf, openClaim, sealClaim, shortIdFromHex } from '../../src/channel/reality/auth.js';
import { boundKeyOf, createTemporaryIdentity } from '../../src/channel/reality/certificate.js';
import { readClientHello } from '../../src/channel/tls/client-hello.js';
import { x25519PairOf } from '../../src/kernel/crypto/crypto.js';

const file = JSON.parse(readFileSync(new URL('../vectors/reality-vectors.json', import.meta.url), 'utf8')) as {
  readonly [
    field in
      | 'hop_private_key'
      | 'hop_public_key'
      | 'server_name'
      | 'short_id'
      | 'dialler_share_private_key'
      | 'random'
      | 'hello_with_empty_session_id'
      | 'auth_key'
      | 'session_id'
      | 'hello'
      | 'temporary_public_key'
      | 'certificate'
  ]: string;
} & { readonly version: [number, number, number]; readonly seconds: number; readonly session_id_at: number };
const bytes = (hex: string): Buffer => Buffer.from(hex, 'hex');
const hex = (data: Uint8Array | undefined): string => Buffer.from(data ?? []).toString('hex');
const hop = x25519PairOf(bytes(file.hop_private_key));
const dialler = x25519PairOf(bytes(file.dialler_share_private_key));
const claim = { version: file.version, seconds: file.seconds, shortId: shortIdFromHex(file.short_id) };

it('a temporary certificate has a positive serial number', () => {
  const certificate = new X509Certificate(createTemporaryIdentity().certificateFor(Buffer.alloc(32)));
  expect(BigInt(`0x${certificate.serialNumber}`)).toBeGreaterThan(0n);
});

describe('the vectors of REALITY', () => {
  it('are what a dialler sends', () => {
    expect(hex(hop.publicKey)).toBe(file.hop_public_key);
    const random = bytes(file.random);
    const authKey = authKeyOf(dialler, hop.publicKey, random);
    expect(hex(authKey)).toBe(file.auth_key);
    const sealed = sealClaim(bytes(file.auth_key), random, bytes(file.hello_with_empty_session_id), claim);
    expect(hex(sealed)).toBe(file.session_id);
  });

  it('are what a hop accepts', () => {
    const hello = readClientHello(bytes(file.hello));
    expect([hello?.serverName, hello?.sessionIdAt]).toEqual([file.server_name, file.session_id_at]);
    const authKey = hello?.x25519 && authKeyOf(hop, hello.x25519, hello.random);
    expect(hex(authKey)).toBe(file.auth_key);
    expect(hello && authKey && openClaim(authKey, hello)).toEqual(claim);
  });

  it('have the certificate that a dialler knows its hop by', () => {
    const key = boundKeyOf(bytes(file.certificate), bytes(file.auth_key));
    expect(key?.export({ format: 'der', type: 'spki' }).toString('hex').endsWith(file.temporary_public_key)).toBe(true);
    expect(boundKeyOf(bytes(file.certificate), Buffer.alloc(32))).toBeUndefined();
  });
});
