/**
 * Applies a batch of whole commands to the committed fleet and collects what they did: the nodes that were touched,
 * deleted or raised, and the PSKs that were revoked. Implements `docs/contract/domain.md#commands-and-events`.
 */
import type { Draft } from '../../domain/aggregate/containers.js';
import { applyInPieces } from '../../domain/fleet/apply.js';
import { draftFleet, type Fleet } from '../../domain/fleet/fleet.js';
import { fleetEvent, resourceOf } from '../../domain/fleet/resources.js';
import { namesHeads } from '../../domain/log-chain/heads.js';
import type { ChainHead } from '../../domain/log-chain/links.js';
import { readCommand } from '../../domain/log/upcast.js';
import { lastEvent, streams, type RecordedCommand } from '../../kernel/event.js';
import { joinIdOf } from '../../kernel/ids.js';
import type { LogChain } from '../../security/log-chain/log-chain.js';
import { MissingEventsError } from '../log-follower.js';

/** The effects of a batch of whole commands. */
export interface FoldBatch {
  /** Nodes whose configuration changed, including deleted ones. */
  readonly touched: ReadonlySet<string>;
  /** The resources of the events, as `type/id`. */
  readonly changed: ReadonlySet<string>;
  /** Nodes whose PSK was replaced, or that were deleted, and the ids of deleted join tokens in sessions, in log order. */
  readonly revoked: readonly string[];
  /** Nodes whose PSK gave way to a candidate that an agent has proven. */
  readonly proven: readonly string[];
  /** An identity key of the service was retired. */
  readonly identityRetired: boolean;
  readonly deleted: ReadonlySet<string>;
  /** Nodes whose generation was raised, with the time of the command (RFC 3339). */
  readonly raised: ReadonlyMap<string, string>;
}

export type MutableFoldBatch = ReturnType<typeof emptyFoldBatch>;

export const emptyFoldBatch = () =>
  ({
    touched: new Set<string>(),
    changed: new Set<string>(),
    revoked: [] as string[],
    proven: [] as string[],
    identityRetired: false as boolean,
    deleted: new Set<string>(),
    raised: new Map<string, string>(),
  }) satisfies FoldBatch;

/** A fleet that commands are folded into, with the draft on which each is tried first. */
export interface FoldedFleet {
  readonly fleet: Fleet;
  readonly draft: Draft<Fleet>;
}

export function foldedFleet(fleet: Fleet): FoldedFleet {
  return { fleet, draft: draftFleet(fleet) };
}

/**
 * Applies the fleet's commands to `folded` and adds their effects to the batch. When a command throws, and whenever it
 * yields, the fleet and the batch hold all commands before it and nothing of it.
 * @param batch the batch that is reported next
 * @throws MissingEventsError, BrokenChainError, UnknownEventError
 */
export function* applyToFold(
  folded: FoldedFleet,
  logChain: LogChain,
  commands: readonly RecordedCommand[],
  batch: () => MutableFoldBatch,
): Generator<void, void> {
  const { fleet } = folded;
  for (const command of commands) {
    if (command.stream !== streams.fleet) continue;
    const expected = fleet.revision.value + 1;
    if (lastEvent(command).revision < expected) continue;
    // A quiet stream and one with missing events look alike: only the revisions show the difference.
    if (command.events[0].revision !== expected) {
      throw new MissingEventsError(
        `${streams.fleet} continues at ${command.events[0].revision} instead of ${expected}`,
      );
    }
    const head = logChain.follow(fleet.logChain.value, command);
    const touched = yield* applyWhole(folded.draft, head, command);
    for (const nodeId of touched) batch().touched.add(nodeId);
    if (!namesHeads(command)) noteEvents(command, batch());
  }
}

/** Up to this many nodes are merged in the same turn of the event loop. */
const touchedAtOnce = 1_000;

/** @returns the nodes that the command touches. When an event throws, the fleet holds nothing of the command. */
function* applyWhole(
  draft: Draft<Fleet>,
  head: ChainHead,
  recorded: RecordedCommand,
): Generator<void, ReadonlySet<string>> {
  try {
    const touched = yield* applyInPieces(draft.state, readCommand(recorded));
    // A change of the whole fleet is merged and reported in a turn of its own.
    if (touched.size > touchedAtOnce) yield;
    draft.state.logChain.set(head);
    draft.merge();
    return touched;
  } finally {
    draft.drop();
  }
}

function noteEvents(command: RecordedCommand, batch: MutableFoldBatch): void {
  for (const recorded of command.events) {
    const event = fleetEvent(recorded);
    const { type, id } = resourceOf(event);
    batch.changed.add(`${type}/${id}`);
    if (event.type === 'NodePskIssued' || event.type === 'NodeDeleted') batch.revoked.push(event.data.node_id);
    if (event.type === 'NodePskCandidateProven') batch.proven.push(event.data.node_id);
    if (event.type === 'ServiceIdentityRetired') batch.identityRetired = true;
    if (event.type === 'JoinTokenDeleted') batch.revoked.push(joinIdOf(event.data.join_token_id));
    if (event.type === 'NodeDeleted') batch.deleted.add(event.data.node_id);
    if (event.type === 'NodeGenerationRaised') batch.raised.set(event.data.node_id, recorded.metadata.occurred_at);
  }
}
