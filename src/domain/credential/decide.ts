/**
 * The rules of credentials, and the decision on an edit. Keys and certificates arrive read, checked against each other and
 * sealed (`src/commands/credentials.ts`). Implements `docs/contract/rest.md#credentials`.
 */
import { ok } from '../../kernel/result.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { PartialUpdate } from '../resource/lifecycle.js';
import type { Decision, Refusal } from '../resource/refusal.js';
import type {
  CredentialDefinition,
  CredentialOverlapEnded,
  CredentialState,
  EndCredentialOverlap,
} from './credential.js';
import { credentialAt, fieldsOfKeyType } from './credential.js';

type Update = PartialUpdate<CredentialDefinition, 'key_type'>;

/** Why an update does not fit a credential as it is. */
export function unfit(credential: CredentialState, update: Update): Refusal | undefined {
  return foreignField(credential, update) ?? keyMismatch(credential, update);
}

export function endOverlap(fleet: FleetView, { id, ends_at }: EndCredentialOverlap): Decision<CredentialOverlapEnded> {
  const overlap = credentialAt(fleet, id)?.overlap;
  if (overlap === undefined || overlap === null || overlap.ends_at !== ends_at) return ok([]);
  return ok([{ type: 'CredentialOverlapEnded', data: { credential_id: id, overlap: { from: overlap, to: null } } }]);
}

/** The fields of an update besides those that every credential has, by their names in requests. */
const fieldNames = {
  public_key: 'private_key',
  x25519_credential_id: 'x25519_credential_id',
  server_names: 'server_names',
  short_ids: 'short_ids',
  target_host: 'target_host',
  target_port: 'target_port',
  certificate_pem: 'certificate_pem, self_signed',
  certificate: 'certificate_pem, self_signed',
} as const satisfies {
  readonly [F in Exclude<keyof CredentialDefinition, 'name' | 'key_type' | 'private_key'>]: string;
};

/** The refusal of an update with a field that the credential's type does not have. */
function foreignField({ key_type }: CredentialState, update: Update): Refusal | undefined {
  const own: readonly string[] = ['name', ...fieldsOfKeyType[key_type]];
  const foreign = (Object.keys(fieldNames) as readonly (keyof typeof fieldNames)[]).find(
    (field) => update[field] !== undefined && !own.includes(field),
  );
  if (foreign === undefined) return undefined;
  return {
    code: 'invalid_request',
    message: `${fieldNames[foreign]}: expected none, because key_type of this credential is ${key_type}`,
  };
}

/** The refusal of a certificate that is to keep a key which is not its own. */
function keyMismatch(credential: CredentialState, { certificate, private_key }: Update): Refusal | undefined {
  if (certificate === undefined || private_key !== undefined) return undefined;
  if (certificate?.spki_sha256 === credential.certificate?.spki_sha256) return undefined;
  return {
    code: 'invalid_request',
    message:
      'certificate_pem: expected a certificate of the key that the credential has; ' +
      'for another key, send its private_key_pem too',
  };
}

/** A key that is sealed again is another value, but no change. */
export function withoutSameKey<U extends Update>(credential: CredentialState, update: U): U {
  const same =
    (update.public_key ?? credential.public_key) === credential.public_key &&
    (update.certificate ?? credential.certificate)?.spki_sha256 === credential.certificate?.spki_sha256;
  return same || update.private_key === undefined ? { ...update, private_key: undefined } : update;
}

/** A REALITY identity needs an X25519 key pair. */
export function referenceRefusal(fleet: FleetView, definition: CredentialDefinition): Refusal | undefined {
  if (definition.key_type !== 'reality') return undefined;
  const keys = credentialAt(fleet, definition.x25519_credential_id);
  if (keys?.key_type === 'x25519') return undefined;
  const { x25519_credential_id: id } = definition;
  const found =
    keys === undefined
      ? `there is no credential ${id}`
      : `credential ${id} "${keys.name}" has key_type ${keys.key_type}`;
  return {
    code: 'invalid_request',
    message: `x25519_credential_id: expected the id of a credential of key_type x25519, ${found}`,
  };
}
