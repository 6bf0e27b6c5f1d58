/**
 * Decides commands about credentials. Keys and certificates arrive read, checked against each other and sealed
 * (`src/commands/credentials.ts`). Implements `docs/contract/rest.md#credentials`.
 */
import { err, ok } from '../../kernel/result.js';
import { changesOf, withChanges } from '../resource/change.js';
import type { Decisions } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import { pick } from '../resource/lifecycle.js';
import type { Refusal } from '../resource/refusal.js';
import { existing, exists, nameTaken, stillUsed, unlessRefused } from '../resource/rules.js';
import type { CredentialCommand, CredentialDefinition, CredentialEvent, CredentialState } from './credential.js';
import { credentialAt, credentialFields, credentialKey, fieldsOfKeyType } from './credential.js';

type Update = Omit<Extract<CredentialCommand, { readonly type: 'UpdateCredential' }>, 'type' | 'id' | 'ifMatch'>;

export const decideCredential: Decisions<CredentialCommand, CredentialEvent> = {
  CreateCredential(fleet, { type: _, id, ...fields }) {
    const refusal = referenceRefusal(fleet, fields) ?? nameTaken(fleet, credentialKey.type, fields.name);
    const data = { credential_id: id, ...pick(fields, credentialFields) };
    return unlessRefused(refusal, { type: 'CredentialCreated', data });
  },
  UpdateCredential(fleet, command) {
    const found = existing(fleet, credentialKey, command);
    if (!found.ok) return err(found.error);
    const credential = found.value;
    const unfit = foreignField(credential, command) ?? keyMismatch(credential, command);
    if (unfit !== undefined) return err(unfit);
    const changes = changesOf(credential, withoutSameKey(credential, command), credentialFields);
    if (Object.keys(changes).length === 0) return ok([]);
    const next = withChanges(credential, changes);
    const refusal =
      referenceRefusal(fleet, next) ??
      nameTaken(fleet, credentialKey.type, next.name, credential.id) ??
      fleet.objectionTo(credentialKey.type, next);
    return unlessRefused(refusal, { type: 'CredentialUpdated', data: { credential_id: credential.id, changes } });
  },
  DeleteCredential(fleet, command) {
    const found = existing(fleet, credentialKey, command);
    if (!found.ok) return err(found.error);
    const data = { credential_id: found.value.id, ...pick(found.value, credentialFields) };
    return unlessRefused(stillUsed(fleet, credentialKey.type, found.value), { type: 'CredentialDeleted', data });
  },
  RestoreCredential(fleet, { type: _, id, former, ...fields }) {
    const refusal =
      exists(fleet, credentialKey.type, id) ??
      referenceRefusal(fleet, fields) ??
      nameTaken(fleet, credentialKey.type, fields.name);
    const data = { credential_id: id, ...pick(fields, credentialFields), former };
    return unlessRefused(refusal, { type: 'CredentialRestored', data });
  },
  EndCredentialOverlap(fleet, { id, ends_at }) {
    const overlap = credentialAt(fleet, id)?.overlap;
    if (overlap === undefined || overlap === null || overlap.ends_at !== ends_at) return ok([]);
    return ok([{ type: 'CredentialOverlapEnded', data: { credential_id: id, overlap: { from: overlap, to: null } } }]);
  },
};

/** The name of a field of the definition in requests. */
const requested: { readonly [F in keyof CredentialDefinition]?: string } = {
  public_key: 'private_key',
  certificate_pem: 'certificate_pem, self_signed',
};

/** The refusal of an update with a field that the credential's type does not have. */
function foreignField({ key_type }: CredentialState, update: Update): Refusal | undefined {
  const own: readonly string[] = ['name', ...fieldsOfKeyType[key_type]];
  const foreign = credentialFields.find(
    (field) => field !== 'key_type' && field !== 'private_key' && update[field] !== undefined && !own.includes(field),
  );
  if (foreign === undefined) return undefined;
  return {
    code: 'invalid_request',
    message: `${requested[foreign] ?? foreign}: expected none, because key_type of this credential is ${key_type}`,
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
function withoutSameKey(credential: CredentialState, update: Update): Update {
  const same =
    (update.public_key ?? credential.public_key) === credential.public_key &&
    (update.certificate ?? credential.certificate)?.spki_sha256 === credential.certificate?.spki_sha256;
  return same || update.private_key === undefined ? { ...update, private_key: undefined } : update;
}

/** A REALITY identity needs an X25519 key pair. */
function referenceRefusal(fleet: FleetView, definition: CredentialDefinition): Refusal | undefined {
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
