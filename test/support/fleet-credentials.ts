/** Credentials of each type for tests of the fleet, with public keys, pins and sealed secrets made from names. */
import { createHash } from 'node:crypto';
import type {
  Certificate,
  CredentialCommand,
  CredentialDefinition,
  CredentialState,
} from '../../src/domain/credential/credential.js';
import { noFields } from '../../src/domain/credential/credential.js';
import type { SealedSecret } from '../../src/domain/secret/sealed.js';
import { uuidFromName } from '../../src/kernel/ids.js';

type Of<T extends CredentialCommand['type']> = Extract<CredentialCommand, { readonly type: T }>;

export const credentialId = (name: string): string => uuidFromName(`credential ${name}`);
const hash = (text: string): Buffer => createHash('sha256').update(text).digest();

/** 32 bytes. */
export const publicKey = (seed: string): Buffer => hash(`public ${seed}`);
/** Base64 of 32 bytes. */
export const pin = (seed: string): string => hash(`spki ${seed}`).toString('base64');
/** Stands for a sealed secret; `openedSecret` gives back what it seals. */
export const sealedSecret = (seed: string): SealedSecret => ({
  alg: 'xc20p',
  key_id: 'key-1',
  nonce: 'bm9uY2U',
  ct: Buffer.from(`secret ${seed}`).toString('base64url'),
});
export const openedSecret = ({ ct }: SealedSecret): Buffer => Buffer.from(ct, 'base64url');

type Name = string;
type Fields = Partial<Omit<CredentialDefinition, 'name' | 'key_type'>>;

function create(name: Name, key_type: CredentialDefinition['key_type'], fields: Fields): Of<'CreateCredential'> {
  return { type: 'CreateCredential', id: credentialId(name), name, key_type, ...noFields, ...fields };
}

/** The key pair that a seed stands for. */
export const x25519Keys = (seed: string) =>
  ({ public_key: publicKey(seed).toString('base64url'), private_key: sealedSecret(`key of ${seed}`) }) as const;

export const createX25519 = (name: Name, seed: string = name): Of<'CreateCredential'> =>
  create(name, 'x25519', x25519Keys(seed));

/** A REALITY identity over the X25519 credential `<name> key`, which must exist. */
const createReality = (name: Name, server_names: readonly string[], fields: Fields = {}) =>
  create(name, 'reality', {
    x25519_credential_id: credentialId(`${name} key`),
    server_names,
    short_ids: ['0a1b', ''],
    target_host: 'front.example',
    target_port: 443,
    ...fields,
  });

/** The certificate of a key for some names. */
export function certificate(seed: string, subject_alt_names: readonly string[]) {
  const described: Certificate = {
    subject: 'CN=test',
    issuer: 'CN=test',
    subject_alt_names,
    not_before: '2026-01-01T00:00:00.000Z',
    not_after: '2036-01-01T00:00:00.000Z',
    serial_number: '01',
    fingerprint_sha256: hash(`certificate ${seed} ${subject_alt_names.join(' ')}`).toString('hex'),
    spki_sha256: pin(seed),
    self_signed: true,
  };
  return {
    certificate: described,
    certificate_pem: `PEM of ${seed} for ${subject_alt_names.join(' ')}`,
    private_key: sealedSecret(`key of ${seed}`),
  } as const;
}

export const createCertificate = (name: Name, names: readonly string[], seed: string = name): Of<'CreateCredential'> =>
  create(name, 'tls_cert', certificate(seed, names));

export function updateCredential(
  name: Name,
  fields: Partial<Omit<Of<'UpdateCredential'>, 'type' | 'id'>>,
): Of<'UpdateCredential'> {
  return { type: 'UpdateCredential', id: credentialId(name), ifMatch: undefined, ...fields };
}

export const endOverlap = (credential: CredentialState): Of<'EndCredentialOverlap'> => ({
  type: 'EndCredentialOverlap',
  id: credential.id,
  ends_at: credential.overlap?.ends_at ?? '',
});

/** An X25519 key, and over it the REALITY identity `name`. */
export const createRealityWithKey = (name: Name, server_names: readonly string[], fields: Fields = {}) =>
  [createX25519(`${name} key`), createReality(name, server_names, fields)] as const;
