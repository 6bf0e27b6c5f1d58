/**
 * Makes, reads and seals the keys and certificates of a document before anything is decided. What the document leaves out is
 * kept if it exists, and generated otherwise where possible.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`, "Kept as they are when absent".
 */
import { credentialKey, namesOfSelfSigned, noFields, type CredentialState } from '../domain/credential/credential.js';
import type { DocumentMistake, FleetDocument, Wanted } from '../domain/fleet-file/document.js';
import type { Resolved } from '../domain/fleet-file/resolve.js';
import { nodeKey } from '../domain/node/node.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { createTurns } from '../kernel/background.js';
import { ServiceError } from '../kernel/errors.js';
import { fromJson, jsonEqual, type JsonObject } from '../kernel/json.js';
import { withPauses } from '../kernel/pieces.js';
import { readCertificateChain } from '../security/certificates.js';
import type { SealedValue } from '../security/sealing.js';
import { keyMaterial, realityFields, type KeyMaterial } from './credentials.js';
import type { CredentialChanges } from './handlers-port.js';
import { tuning } from './tuning.js';

export interface WithKeys {
  /** Its credentials have the fields of the domain. */
  readonly document: FleetDocument;
  readonly mistakes: readonly DocumentMistake[];
  /** Ids of credentials whose key or certificate the service has just made. */
  readonly generated: ReadonlySet<string>;
}

export interface KeyOptions {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** For a plan: a missing secret counts as given. */
  readonly presume: boolean;
  /** The PSK of a new node; null for none. */
  psk(id: string): object | null;
  /** Seals the private key of a credential and wipes it. */
  seal(id: string, material: KeyMaterial): SealedValue | null;
}

/** @param names the document's names, resolved in the fleet */
export async function withKeys(
  fleet: Fleet,
  document: FleetDocument,
  names: Resolved,
  options: KeyOptions,
): Promise<WithKeys> {
  const mistakes = [...names.mistakes];
  const generated = new Set<string>();
  const resources: Wanted[] = [];
  const turn = createTurns(tuning.fileTurnMs);
  for (const wanted of document.resources) {
    await turn();
    if (wanted.type === nodeKey.type) {
      const psk = names.isNew(wanted) ? options.psk(wanted.id) : null;
      resources.push({ ...wanted, fields: { ...wanted.fields, psk } as JsonObject, edited: wanted.fields });
      continue;
    }
    if (wanted.type !== credentialKey.type) {
      resources.push(wanted);
      continue;
    }
    const id = names.idOf(wanted.id);
    const before = names.isNew(wanted) ? undefined : fleet.get(credentialKey, id);
    const given = fromJson<Given>(wanted.fields);
    try {
      const asked = await askedFor(given, before, options.presume);
      const read = await keyMaterial(asked, options.now);
      const presumed =
        read.fields.certificate !== undefined && read.privateKey === undefined && isOtherKey(read, before);
      const material = presumed ? { ...read, privateKey: Buffer.from('presumed') } : read;
      if (asked.private_key === null || asked.self_signed !== undefined) generated.add(id);
      const private_key = options.seal(id, material);
      const secret = private_key === null ? {} : { private_key };
      const edited = { ...realityFields(given), ...material.fields, ...secret };
      const fields = { ...noFields, ...edited, key_type: given.key_type } as JsonObject;
      resources.push({ ...wanted, fields, edited: edited as JsonObject, keepsKey: keepsKey(given) });
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'invalid_request') throw error;
      mistakes.push({ at: wanted.at, message: error.message });
    }
  }
  return { document: { ...document, resources }, mistakes, generated };
}

/** A credential in the fields of requests. */
type Given = CredentialChanges & Pick<CredentialState, 'key_type'>;

/** Whether the document leaves the key or the certificate of a credential alone. */
function keepsKey({ key_type, private_key, certificate_pem, self_signed }: Given): boolean {
  if (key_type === 'reality') return false;
  return typeof private_key !== 'string' && certificate_pem === undefined && self_signed === undefined;
}

const isOtherKey = ({ fields }: KeyMaterial, before: CredentialState | undefined): boolean =>
  fields.certificate?.spki_sha256 !== before?.certificate?.spki_sha256;

type Asked = Parameters<typeof keyMaterial>[0];

/** The keys and certificates to make or read, without those that are kept. */
async function askedFor(given: Given, before: CredentialState | undefined, presume: boolean): Promise<Asked> {
  const { key_type, private_key, certificate_pem, private_key_pem, self_signed } = given;
  switch (key_type) {
    case 'x25519':
      if (typeof private_key === 'string') return { private_key };
      return (before?.public_key ?? null) === null ? { private_key: null } : {};
    case 'reality':
      return {};
    case 'tls_cert': {
      const kept = before?.certificate ?? undefined;
      if (self_signed !== undefined) {
        const { common_name, subject_alt_names = [] } = self_signed;
        const names = subject_alt_names.length === 0 ? [common_name] : subject_alt_names;
        const same = jsonEqual(kept && namesOfSelfSigned(kept), { common_name, subject_alt_names: names });
        return same ? {} : { self_signed };
      }
      if (certificate_pem === undefined) return {};
      if (private_key_pem === undefined && certificate_pem === before?.certificate_pem) return {};
      const chain = await withPauses(readCertificateChain(certificate_pem));
      const sameKey = chain.ok && chain.value.leaf.spki_sha256 === kept?.spki_sha256;
      // A kept certificate may have expired since it was saved.
      if (sameKey && private_key_pem === undefined && chain.value.pem === before?.certificate_pem) return {};
      if (private_key_pem === undefined && !sameKey && !presume) {
        throw new ServiceError('invalid_request', 'private_key_pem: required, expected the PEM key of certificate_pem');
      }
      return { certificate_pem, ...(private_key_pem === undefined ? {} : { private_key_pem }) };
    }
  }
}
