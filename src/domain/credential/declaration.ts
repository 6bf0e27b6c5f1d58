/** The declaration of credentials. They add nothing to snapshots themselves: what refers to them compiles their keys. */
import { timestamp } from '../../kernel/clock.js';
import { limits } from '../../kernel/limits.js';
import { err } from '../../kernel/result.js';
import { ownerOf } from '../references/references.js';
import type { AuditChange, EventAudit } from '../resource/audit-change.js';
import { addedFields, eventAudit, fieldChanges, masked, removedFields } from '../resource/audit-change.js';
import type { EventContext, EventDeclarations } from '../resource/declaration.js';
import { defineResource } from '../resource/define-resource.js';
import type { FleetView } from '../resource/fleet-view.js';
import { pick } from '../resource/lifecycle.js';
import { nextVersion } from '../resource/meta.js';
import { existing } from '../resource/rules.js';
import type { CredentialDefinition, CredentialOverlapEnded, CredentialState, PinOverlap } from './credential.js';
import { credentialAt, credentialKey, fieldsOfKeyType } from './credential.js';
import { endOverlap, referenceRefusal, unfit, withoutSameKey } from './decide.js';

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
  // Nothing dials by a credential that was deleted, so a restored one has no former pin to trust.
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
  objectionTo: null,
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

/** The nodes whose rules an event changes, through the resources that use the credential. */
function touches(fleet: FleetView, event: CredentialEvent, context: EventContext): Iterable<string> {
  const after = evolve(credentialAt(fleet, event.data.credential_id), event, context);
  return after === undefined ? [] : fleet.nodesChangedBy(credentialKey.type, after);
}

export const credential = {
  ...base,
  decide: {
    ...base.decide,
    UpdateCredential(fleet: FleetView, command: Parameters<typeof base.decide.UpdateCredential>[1]) {
      const found = existing(fleet, credentialKey, command);
      if (!found.ok) return err(found.error);
      const refusal = unfit(found.value, command);
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
      // No rule holds the name, so nothing is compared.
      touches: (fleet, event, context) =>
        Object.keys(event.data.changes).every((field) => field === 'name') ? [] : touches(fleet, event, context),
    },
    CredentialDeleted: {
      ...base.events.CredentialDeleted,
      audit: ({ data }) => eventAudit('delete', withoutSecrets(removedFields(ownFields(data)))),
    },
    CredentialRestored: { ...base.events.CredentialRestored, audit: created },
    CredentialOverlapEnded: {
      schemaVersion: 1,
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

/** A new overlap when the key of the certificate changes, else the one that lasts. */
function overlapOf(before: CredentialState, after: CredentialState, at: string): PinOverlap | null {
  const former = before.certificate?.spki_sha256;
  if (former === undefined || former === after.certificate?.spki_sha256) return before.overlap;
  return { spki_sha256: former, ends_at: timestamp(Date.parse(at) + limits.fleet.pinOverlapMs) };
}
