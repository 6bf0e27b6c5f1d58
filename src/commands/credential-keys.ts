/**
 * The keys and certificates of credentials before a command is decided: generates or reads them, and checks that a key
 * and its certificate belong together and are valid now. `credentials.ts` seals. Implements
 * `docs/contract/rest.md#credentials`.
 */
import type { CredentialDefinition } from '../domain/credential/credential.js';
import { timestamp } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import type { Result } from '../kernel/result.js';
import { generateX25519, x25519PairOf } from '../kernel/crypto/crypto.js';
import type { X25519KeyPair } from '../kernel/crypto/crypto.js';
import type { CertificateChain } from '../security/certificates.js';
import { readCertificateChain, readPrivateKey } from '../security/certificates.js';
import type { CredentialChanges, SelfSigned } from './handlers-port.js';
import { tuning } from './tuning.js';

/** Fields of the definition, and the private key that is to be sealed into it. */
export interface KeyMaterial {
  readonly fields: Partial<Pick<CredentialDefinition, 'public_key' | 'certificate_pem' | 'certificate'>>;
  /** 32 bytes, or PEM. The caller wipes it. */
  readonly privateKey?: Uint8Array;
}

type Given = Pick<CredentialChanges, 'private_key' | 'certificate_pem' | 'private_key_pem' | 'self_signed'>;

const day = 24 * 3600 * 1000;

/**
 * The keys and certificates that a request gives or asks for; nothing when it says nothing of them.
 * @param now milliseconds since the epoch
 * @throws ServiceError `invalid_request` that names the field
 */
export async function keyMaterial(given: Given, now: number): Promise<KeyMaterial> {
  const { private_key, certificate_pem, private_key_pem, self_signed } = given;
  if (private_key !== undefined) return x25519Material(private_key);
  if (self_signed !== undefined) return selfSignedMaterial(self_signed, now);
  if (certificate_pem === undefined) return { fields: {} };
  const chain = readable('certificate_pem', readCertificateChain(certificate_pem));
  const invalid = invalidity(chain, now);
  if (invalid !== undefined) throw refusal('certificate_pem', invalid);
  const fields = fieldsOf(chain);
  if (private_key_pem === undefined) return { fields };
  const key = readable('private_key_pem', readPrivateKey(private_key_pem));
  if (!chain.matches(key)) {
    throw refusal(
      'private_key_pem',
      'expected the key of the first certificate of certificate_pem, this is another one',
    );
  }
  return { fields, privateKey: Buffer.from(key.pem) };
}

/** @param given base64url of 32 bytes, or null to generate a key */
function x25519Material(given: string | null): KeyMaterial {
  const pair = given === null ? generateX25519() : imported(given);
  return {
    fields: { public_key: Buffer.from(pair.publicKey).toString('base64url') },
    privateKey: pair.privateKey,
  };
}

function imported(given: string): X25519KeyPair {
  const bytes = Buffer.from(given, 'base64url');
  const pair = x25519PairOf(bytes);
  bytes.fill(0);
  return pair;
}

async function selfSignedMaterial(wanted: SelfSigned, now: number): Promise<KeyMaterial> {
  const { common_name, subject_alt_names = [], days = limits.rest.selfSignedDaysDefault } = wanted;
  const { createSelfSigned } = await import('../security/certificates.js');
  const { certificatePem, privateKeyPem } = await createSelfSigned({
    commonName: common_name,
    subjectAltNames: subject_alt_names.length === 0 ? [common_name] : subject_alt_names,
    notBefore: now - tuning.certificateClockSkewMs,
    notAfter: now + days * day,
  });
  return {
    fields: fieldsOf(readable('self_signed', readCertificateChain(certificatePem))),
    privateKey: Buffer.from(privateKeyPem),
  };
}

function fieldsOf({ pem, leaf }: CertificateChain): KeyMaterial['fields'] {
  return { certificate_pem: pem, certificate: leaf };
}

/** Why a chain cannot be used now. A certificate that was just issued may be ahead of this clock. */
function invalidity({ leaf, endsAt }: CertificateChain, now: number): string | undefined {
  if (Date.parse(endsAt) <= now) {
    return `expected certificates that have not expired, one did at ${endsAt} (it is ${timestamp(now)})`;
  }
  if (Date.parse(leaf.not_before) > now + tuning.certificateClockSkewMs) {
    return `expected a certificate that is valid now, it begins at ${leaf.not_before} (it is ${timestamp(now)})`;
  }
  return undefined;
}

function readable<T>(field: string, read: Result<T, string>): T {
  if (!read.ok) throw refusal(field, read.error);
  return read.value;
}

function refusal(field: string, sentence: string): ServiceError {
  return new ServiceError('invalid_request', `${field}: ${sentence}`);
}
