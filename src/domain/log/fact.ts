/** Facts as they are proposed to the log: what happened by itself. `src/commands/proposal.ts` proposes what commands decide. */
import type { Actor, EventMetadata, ProposedEvent } from '../../kernel/event.js';
import type { Ids } from '../../kernel/ids.js';
import { asJson, fromJson } from '../../kernel/json.js';
import { schemaVersions } from './upcast.js';

export const serviceActor: Actor = { type: 'system', id: 'service', name: 'service' };

interface FactContext {
  readonly actor: Actor;
  readonly requestId: string;
  /** RFC 3339. */
  readonly at: string;
  /** A new one unless given. */
  readonly id?: string;
  /** A command of its own unless given. */
  readonly command?: EventMetadata['command'];
}

export function proposedFact(
  { type, data }: { readonly type: keyof typeof schemaVersions; readonly data: object },
  ids: Ids,
  { actor, requestId, at, id = ids.next(), command = { id: ids.next(), index: 0, count: 1 } }: FactContext,
): ProposedEvent {
  return {
    id,
    type,
    data: fromJson(asJson(data)),
    metadata: { command, actor, request_id: requestId, occurred_at: at, schema_version: schemaVersions[type] },
  };
}
