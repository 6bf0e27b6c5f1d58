/**
 * The declaration of credentials, with the rules of an edit. Keys and certificates arrive read, checked against each other
 * and sealed (`src/commands/credentials.ts`). Credentials add nothing to snapshots; their referrers compile their keys.
 * Implements `docs/contract/rest.md#credentials`.
 */
import { timestamp } from '../../kernel/clock.js';
import { limits } from '../../kernel/limits.js';
import { err, ok } from '../../kernel/result.js';
import { ownerOf } from '../references/references.js';
import {
  addedFields,
  eventAudit,
  fieldChanges,
  masked,
  removedFields,
  type AuditChange,
  type EventAudit,
} from '../resource/audit-change.js';
import type { EventContext, EventDeclarations } from '../resource/declaration.js';
import { defineResource } from '../resource/define-resource.js';
import type { FleetView } from '../resource/fleet-view.js';
import { pick, type PartialUpdate } from '../resource/lifecycle.js';
import { nextVersion } from '../resource/meta.js';
import { existing } from '../resource/rules.js';
import {
  credentialKey,
  fieldsOfKeyType,
  type CredentialDefinition,
  type CredentialOverlapEnded,
  type CredentialState,
  type PinOverlap,
  type EndCredentialOverlap,
} from './credential.js';
import type { Decision, Refusal } from '../resource/refusal.js';

type Update = PartialUpdate<CredentialDefinition, 'key_type'>;

function endOverlap(fleet: FleetView, { id, ends_at }: EndCredentialOverlap): Decision<CredentialOverlapEnded> {
  const overlap = fleet.get(credentialKey, id)?.overlap;
  if (overlap === undefined || overlap === null || overlap.ends_at !== ends_at) return ok([]);
  return ok([{ type: 'CredentialOverlapEnded', data: { credential_id: id, overlap: { from: overlap, to: null } } }]);
}

/** The names of type-specific fields in requests. */
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

/** The refusal of a certificate without a key that does not match the present key. */
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

/** Sealing the same key again gives another value, which must not count as a change. */
function withoutSameKey<U extends Update>(credential: CredentialState, update: U): U {
  const same =
    (update.public_key ?? credential.public_key) === credential.public_key &&
    (update.certificate ?? credential.certificate)?.spki_sha256 === credential.certificate?.spki_sha256;
  return same || update.private_key === undefined ? { ...update, private_key: undefined } : update;
}

/** A REALITY identity needs an X25519 key pair. */
function referenceRefusal(fleet: FleetView, definition: CredentialDefinition): Refusal | undefined {
  if (definition.key_type !== 'reality') return undefined;
  const keys = fleet.get(credentialKey, definition.x25519_credential_id);
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

/** The part of a credential's state besides its definition. */
type Overlap = Pick<CredentialState, 'overlap'>;

const keyReplaced = 'a key or certificate can be replaced by another one, not taken back';
const overlapEnded = 'it ends the overlap of a certificate key that was replaced';

/** The fields that the type of a credential has. */
function ownFields(definition: CredentialDefinition): object {
  return pick(definition, ['name', 'key_type', ...fieldsOfKeyType[definition.key_type]]);
}

function withoutSecrets(changes: readonly AuditChange[]): readonly AuditChange[] {
  return changes.map(({ path, before, after }) =>
    path === 'private_key'
      ? { path, before: before === null ? null : masked, after: after === null ? null : masked }
      : { path, before, after },
  );
}

const created = ({ data }: { readonly data: CredentialDefinition }): EventAudit =>
  eventAudit('create', withoutSecrets(addedFields(ownFields(data))));

const base = defineResource<CredentialDefinition, Overlap, 'key_type'>()('credential', {
  fields: [
    'name',
    'key_type',
    'public_key',
    'private_key',
    'x25519_credential_id',
    'server_names',
    'short_ids',
    'target_host',
    'target_port',
    'certificate_pem',
    'certificate',
  ],
  // Nothing dials with a deleted credential, so a restored one has no former pin to trust.
  initial: { overlap: null },
  alsoDeleted: [],
  sealed: ['private_key'],
  invalid: referenceRefusal,
  indexed: {
    dependsOn: ['x25519_credential_id'],
    references: ({ x25519_credential_id: id }) => (id === null ? [] : [ownerOf(credentialKey.type, id)]),
    claims: () => [],
    shapesClaims: ['public_key', 'server_names', 'certificate'],
    nodes: () => [],
  },
  compiled: null,
  touches: null,
});

type CredentialEvent = Parameters<typeof base.evolve>[1] | CredentialOverlapEnded;

function evolve(
  state: CredentialState | undefined,
  event: CredentialEvent,
  context: EventContext,
): CredentialState | undefined {
  if (event.type === 'CredentialOverlapEnded') {
    return state === undefined ? undefined : nextVersion({ ...state, overlap: event.data.overlap.to }, context.at);
  }
  const next = base.evolve(state, event, context);
  if (state === undefined || next === undefined) return next;
  return { ...next, overlap: overlapOf(state, next, context.at) };
}

/** The nodes whose rules change, through the resources that use the credential. */
function touches(fleet: FleetView, event: CredentialEvent, context: EventContext): Iterable<string> {
  const after = evolve(fleet.get(credentialKey, event.data.credential_id), event, context);
  return after === undefined ? [] : fleet.nodesChangedBy(credentialKey.type, after);
}

export const credential = {
  ...base,
  decide: {
    ...base.decide,
    UpdateCredential(fleet: FleetView, command: Parameters<typeof base.decide.UpdateCredential>[1]) {
      const found = existing(fleet, credentialKey, command);
      if (!found.ok) return err(found.error);
      const refusal = foreignField(found.value, command) ?? keyMismatch(found.value, command);
      if (refusal !== undefined) return err(refusal);
      return base.decide.UpdateCredential(fleet, withoutSameKey(found.value, command));
    },
    EndCredentialOverlap: endOverlap,
  },
  evolve,
  events: {
    ...base.events,
    CredentialCreated: { ...base.events.CredentialCreated, audit: created },
    CredentialUpdated: {
      ...base.events.CredentialUpdated,
      audit({ data: { changes } }) {
        const rotated = ['public_key', 'private_key', 'certificate'].some((field) => changes[field] !== undefined);
        return eventAudit('update', withoutSecrets(fieldChanges(changes)), rotated ? keyReplaced : null);
      },
      // No rule contains the name.
      touches: (fleet, event, context) =>
        Object.keys(event.data.changes).every((field) => field === 'name') ? [] : touches(fleet, event, context),
    },
    CredentialDeleted: {
      ...base.events.CredentialDeleted,
      audit: ({ data }) => eventAudit('delete', withoutSecrets(removedFields(ownFields(data)))),
    },
    CredentialRestored: { ...base.events.CredentialRestored, audit: created },
    CredentialOverlapEnded: {
      audit: ({ data }) =>
        eventAudit(
          'update',
          [{ path: 'former_spki_sha256', before: data.overlap.from?.spki_sha256 ?? null, after: null }],
          overlapEnded,
        ),
      undo: null,
      touches,
    },
  } satisfies EventDeclarations<CredentialEvent>,
};

/** A new overlap if the certificate's key changes, otherwise the present one. */
function overlapOf(before: CredentialState, after: CredentialState, at: string): PinOverlap | null {
  const former = before.certificate?.spki_sha256;
  if (former === undefined || former === after.certificate?.spki_sha256) return before.overlap;
  return { spki_sha256: former, ends_at: timestamp(Date.parse(at) + limits.fleet.pinOverlapMs) };
}
