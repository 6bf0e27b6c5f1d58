/**
 * Handlers of credentials. Before a command is decided, they generate or read its key and certificate, check that these
 * belong together and are valid now, and seal the private key. The rules are in `src/domain/credential`. Implements
 * `docs/contract/rest.md#credentials`.
 */
import {
  credentialKey,
  fieldsOfKeyType,
  noFields,
  type CredentialState,
  type CredentialDefinition,
} from '../domain/credential/credential.js';
import type { FleetCommand } from '../domain/fleet/resources.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { pick } from '../domain/resource/lifecycle.js';
import { timestamp, type Clock } from '../kernel/clock.js';
import { streams } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import type { Keyring } from '../security/keyring.js';
import type { SealedValue } from '../security/sealing.js';
import type { CommandHandlers, CredentialChanges, RealityFields, SelfSigned } from './handlers-port.js';
import type { CommandContext, CommandOutcome, Gateway } from './port.js';
import { lifecycleHandlers, present } from './resources.js';
import { ServiceError } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import type { Result } from '../kernel/result.js';
import { generateX25519, x25519PairOf, type X25519KeyPair } from '../kernel/crypto/crypto.js';
import { runSync, withPauses } from '../kernel/pieces.js';
import { readCertificateChain, readPrivateKey, type CertificateChain } from '../security/certificates.js';
import { createSelfSigned } from '../security/self-signed.js';
import { tuning } from './tuning.js';

export interface CredentialHandlerOptions {
  readonly gateway: Gateway<Fleet, FleetCommand>;
  readonly keyring: Keyring;
  readonly clock: Clock;
  readonly ids: Ids;
}

export function createCredentialHandlers(options: CredentialHandlerOptions): CommandHandlers['credentials'] {
  const { gateway, keyring, clock, ids } = options;
  const { remove } = lifecycleHandlers('credential', gateway, ids);
  const run = (id: string, command: FleetCommand, context: CommandContext): Promise<CommandOutcome<CredentialState>> =>
    gateway.execute(command, context, (fleet) => present(fleet.get(credentialKey, id)));

  return {
    remove,
    async create(context, request) {
      const id = ids.next();
      const { name, key_type, ...given } = request;
      const wanted: CredentialChanges = given;
      const asked = key_type === 'x25519' ? { private_key: wanted.private_key ?? null } : wanted;
      const material = await keyMaterial(asked, clock.now());
      const definition = { ...noFields, name, key_type, ...realityFields(wanted), ...material.fields };
      const private_key = sealPrivateKey(keyring, id, material);
      return run(id, { type: 'CreateCredential', id, ...definition, private_key }, context);
    },
    async update(context, id, ifMatch, changes) {
      const material = await keyMaterial(changes, clock.now());
      const definition = { name: changes.name, ...realityFields(changes), ...material.fields };
      const private_key = sealPrivateKey(keyring, id, material) ?? undefined;
      return run(id, { type: 'UpdateCredential', id, ifMatch, ...definition, private_key }, context);
    },
  };
}

/** Seals the private key of a credential and wipes it. */
export function sealPrivateKey(
  keyring: Pick<Keyring, 'seal'>,
  resourceId: string,
  { privateKey }: KeyMaterial,
): SealedValue | null {
  if (privateKey === undefined) return null;
  const sealed = keyring.seal(privateKey, { stream: streams.fleet, resourceId, field: 'private_key' });
  privateKey.fill(0);
  return sealed;
}

/** The fields of a REALITY identity that a request gives. */
export function realityFields(changes: CredentialChanges): Partial<RealityFields> {
  return pick(changes, fieldsOfKeyType.reality) as Partial<RealityFields>;
}

/** Fields of a definition, and the private key to seal into it. */
export interface KeyMaterial {
  readonly fields: Partial<Pick<CredentialDefinition, 'public_key' | 'certificate_pem' | 'certificate'>>;
  /** 32 bytes, or PEM. The caller wipes it. */
  readonly privateKey?: Uint8Array;
}

type Given = Pick<CredentialChanges, 'private_key' | 'certificate_pem' | 'private_key_pem' | 'self_signed'>;

const day = 24 * 3600 * 1000;

/**
 * The keys and certificates that a request gives or asks for, if any.
 * @param now milliseconds since the epoch
 * @throws ServiceError `invalid_request` that names the field
 */
export async function keyMaterial(given: Given, now: number): Promise<KeyMaterial> {
  const { private_key, certificate_pem, private_key_pem, self_signed } = given;
  if (private_key !== undefined) return x25519Material(private_key);
  if (self_signed !== undefined) return selfSignedMaterial(self_signed, now);
  if (certificate_pem === undefined) return { fields: {} };
  const chain = readable('certificate_pem', await withPauses(readCertificateChain(certificate_pem)));
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
  const { certificatePem, privateKeyPem } = await createSelfSigned({
    commonName: common_name,
    subjectAltNames: subject_alt_names.length === 0 ? [common_name] : subject_alt_names,
    notBefore: now - tuning.certificateClockSkewMs,
    notAfter: now + days * day,
  });
  return {
    fields: fieldsOf(readable('self_signed', runSync(readCertificateChain(certificatePem)))),
    privateKey: Buffer.from(privateKeyPem),
  };
}

function fieldsOf({ pem, leaf }: CertificateChain): KeyMaterial['fields'] {
  return { certificate_pem: pem, certificate: leaf };
}

/** Why a chain cannot be used now. A new certificate may be slightly ahead of this clock. */
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
