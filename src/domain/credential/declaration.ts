/** The declaration of credentials. They add nothing to snapshots themselves: what refers to them compiles their keys. */
import type { AuditChange, EventAudit } from '../resource/audit-change.js';
import { addedFields, eventAudit, fieldChanges, masked, removedFields } from '../resource/audit-change.js';
import type { Resource } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import { pick } from '../resource/lifecycle.js';
import { lifecycleUndo } from '../resource/undo.js';
import { ownerOf } from '../references/references.js';
import type { CredentialCommand, CredentialDefinition, CredentialEvent, CredentialState } from './credential.js';
import { credentialAt, credentialFields, credentialKey, fieldsOfKeyType } from './credential.js';
import { decideCredential } from './decide.js';
import { evolveCredential } from './evolve.js';

const undo = lifecycleUndo('credential', 'Credential', 'credential');
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

/** The nodes whose rules another state of the credential changes. */
function changedBy(
  fleet: FleetView,
  id: string,
  change: (before: CredentialState) => CredentialState,
): Iterable<string> {
  const credential = credentialAt(fleet, id);
  return credential === undefined ? [] : fleet.nodesChangedBy(credentialKey.type, change(credential));
}

export const credential: Resource<
  'credential',
  'Credential',
  'credential',
  CredentialState,
  CredentialEvent,
  CredentialCommand
> = {
  type: 'credential',
  noun: 'Credential',
  singular: 'credential',
  fields: credentialFields,
  sealed: ['private_key'],
  decide: decideCredential,
  evolve: evolveCredential,
  indexed: {
    dependsOn: ['x25519_credential_id'],
    references: ({ x25519_credential_id: id }) => (id === null ? [] : [ownerOf(credentialKey.type, id)]),
    claims: () => [],
    shapesClaims: ['public_key', 'server_names', 'certificate'],
    nodes: () => [],
  },
  compiled: null,
  objectionTo: null,
  events: {
    CredentialCreated: {
      schemaVersion: 1,
      audit: created,
      undo: undo.created,
      touches: () => [],
    },
    CredentialUpdated: {
      schemaVersion: 1,
      audit({ data: { changes } }) {
        const rotated = ['public_key', 'private_key', 'certificate'].some((field) => changes[field] !== undefined);
        return eventAudit('update', withoutSecrets(fieldChanges(changes)), rotated ? keyReplaced : null);
      },
      undo: undo.updated,
      touches(fleet, event, context) {
        const { credential_id: id, changes } = event.data;
        // No rule holds the name, so nothing is compared.
        if (Object.keys(changes).every((field) => field === 'name')) return [];
        return changedBy(fleet, id, (before) => evolveCredential(before, event, context) ?? before);
      },
    },
    CredentialDeleted: {
      schemaVersion: 1,
      audit: ({ data }) => eventAudit('delete', withoutSecrets(removedFields(ownFields(data)))),
      undo: undo.deleted,
      touches: () => [],
    },
    CredentialRestored: { schemaVersion: 1, audit: created, undo: undo.restored, touches: () => [] },
    CredentialOverlapEnded: {
      schemaVersion: 1,
      audit: ({ data }) =>
        eventAudit(
          'update',
          [{ path: 'former_spki_sha256', before: data.overlap.from?.spki_sha256 ?? null, after: null }],
          overlapEnded,
        ),
      undo: null,
      touches: (fleet, { data }) =>
        changedBy(fleet, data.credential_id, (before) => ({ ...before, overlap: data.overlap.to })),
    },
  },
};
