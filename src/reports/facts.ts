/**
 * What agents did according to the log: for each node the fold of its facts in `svc-agents-*`, in memory, with a checkpoint. It
 * also follows the fleet, because a deleted or restored node starts without facts. Holds no telemetry. Implements
 * `docs/contract/rest.md#nodes` (`apply`, `duplicate_agent`, `version_conflict_at`) and
 * `docs/contract/domain.md#one-consistency-boundary-the-fleet`.
 */
import { agentEvent, type AgentEvent } from '../domain/agents/facts.js';
import { evolveAgentFacts, neverConnected, type NodeAgentFacts } from '../domain/agents/node-agent-facts.js';
import { fleetEvent } from '../domain/fleet/resources.js';
import { readCommand } from '../domain/log/upcast.js';
import { errorText } from '../kernel/errors.js';
import { agentStreams, lastEvent, streams, type RecordedCommand, type RecordedEvent } from '../kernel/event.js';
import { createListeners } from '../kernel/listeners.js';
import type { Logger } from '../kernel/logger.js';
import { createWaiters } from '../kernel/waiters.js';
import { levelOf } from '../storage/broken-log.js';
import type { EventStore } from '../storage/event-store.js';
import { openCheckpoint, storeCheckpoint, type Sealing } from '../storage/sealed-checkpoint.js';

/** A folded fact, and when it happened, RFC 3339. */
export interface RecordedFact {
  readonly fact: AgentEvent;
  readonly at: string;
}

export interface AgentFacts {
  /** The facts of a node; an unknown one counts as never connected. */
  of(nodeId: string): NodeAgentFacts;
  /** Calls back with each fact once it is folded. @returns how to stop */
  onFact(listener: (recorded: RecordedFact) => void): () => void;
  /** True once an event of a stream of facts is folded, false after `timeoutMs`. */
  holds(stream: string, revision: number, timeoutMs: number): Promise<boolean>;
  /** Why the fold has stopped; undefined while it runs. */
  failure(): string | undefined;
  /** True once the end of the log was reached. */
  caughtUp(): boolean;
}

/** The same as a fold that `followInMemory` keeps at the end of the log. */
export interface AgentFactsFold extends AgentFacts {
  readonly streams: readonly string[];
  revision(stream: string): number;
  position(): number;
  save(signal: AbortSignal): Promise<void>;
  apply(commands: readonly RecordedCommand[]): void;
  moved(distance: unknown, caughtUp: boolean): void;
  stopped(error: unknown): void;
  /** Ends every wait. */
  close(): void;
}

export interface AgentFactsDeps {
  readonly eventStore: Pick<EventStore, 'loadFoldCheckpoint' | 'saveFoldCheckpoint'>;
  readonly sealing: Sealing;
  readonly logger: Logger;
}

/** Raise the version when the fold's state or meaning changes: older checkpoints are then ignored. */
const kind = { name: 'svc-agents', foldVersion: 2 } as const;
const linesPerSlice = 500;

/** The first line of a checkpoint. Each other line is an existing node with its facts; null: it has none yet. */
interface Head {
  readonly position: number;
  readonly revisions: readonly (readonly [stream: string, revision: number])[];
}
type Line = readonly [nodeId: string, facts: NodeAgentFacts | null];

/** Loads the checkpoint. @throws ServiceError `unavailable` */
export async function openAgentFacts({ eventStore, sealing, logger }: AgentFactsDeps): Promise<AgentFactsFold> {
  /** Every existing node. */
  const nodes = new Map<string, NodeAgentFacts>();
  const revisions = new Map<string, number>();
  let position = 0;
  let failure: string | undefined;
  let caughtUp = false;
  const waiters = createWaiters();
  const listeners = createListeners<RecordedFact>((error) =>
    logger.error({ error: errorText(error) }, 'a listener for agent facts failed'),
  );

  function restore(lines: Uint8Array): void {
    const [head, ...rest] = Buffer.from(lines).toString('utf8').trimEnd().split('\n');
    const at = JSON.parse(head ?? '') as Head;
    position = at.position;
    for (const [stream, revision] of at.revisions) revisions.set(stream, revision);
    for (const line of rest) {
      const [nodeId, facts] = JSON.parse(line) as Line;
      nodes.set(nodeId, facts ?? neverConnected);
    }
  }

  function* slicesOf(head: Head, lines: readonly Line[]): Generator<Uint8Array> {
    yield Buffer.from(`${JSON.stringify(head)}\n`);
    for (let from = 0; from < lines.length; from += linesPerSlice) {
      const slice = lines.slice(from, from + linesPerSlice);
      yield Buffer.from(slice.map((line) => `${JSON.stringify(line)}\n`).join(''));
    }
  }

  /** Folds a fact; one about a node that no longer exists changes nothing. */
  function takeFact(event: RecordedEvent): void {
    const fact = agentEvent(event);
    const { node_id } = fact.data;
    const before = nodes.get(node_id);
    const { occurred_at: at, request_id } = event.metadata;
    if (before !== undefined) nodes.set(node_id, evolveAgentFacts(before, fact, at, request_id));
    listeners.tell({ fact, at });
  }

  /** Folds the creation or end of a node. A restored node has no facts, because its agent's PSK is no longer valid. */
  function takeLife(event: RecordedEvent): void {
    const { type, data } = fleetEvent(event);
    if (type === 'NodeCreated' || type === 'NodeRestored') nodes.set(data.node_id, neverConnected);
    else if (type === 'NodeDeleted') nodes.delete(data.node_id);
  }

  const stored = await eventStore.loadFoldCheckpoint(kind.name);
  const lines = stored && openCheckpoint(kind, stored, sealing);
  if (lines?.ok === true) restore(lines.value);
  else if (lines !== undefined) {
    logger.warn({ reason: lines.error }, 'the checkpoint of agent facts is not used; the log is read instead');
  }

  return {
    of: (nodeId) => nodes.get(nodeId) ?? neverConnected,
    onFact: listeners.add,
    holds: (stream, revision, timeoutMs) => waiters.until(() => (revisions.get(stream) ?? -1) >= revision, timeoutMs),
    failure: () => failure,
    caughtUp: () => caughtUp,
    streams: [streams.fleet, ...agentStreams],
    revision: (stream) => revisions.get(stream) ?? -1,
    position: () => position,
    save(signal) {
      const head: Head = { position, revisions: [...revisions] };
      const all = [...nodes].map(([id, facts]): Line => [id, facts === neverConnected ? null : facts]);
      const captured = { revision: revisions.get(streams.fleet) ?? -1, position, slices: slicesOf(head, all) };
      return storeCheckpoint(eventStore, kind, captured, sealing, signal);
    },
    apply(commands) {
      for (const command of commands) {
        const last = lastEvent(command);
        if (last.position <= position) continue;
        for (const event of readCommand(command).events) {
          if (event.stream === streams.fleet) takeLife(event);
          else takeFact(event);
        }
        position = last.position;
        revisions.set(command.stream, last.revision);
      }
      waiters.look();
    },
    moved(_distance, atEnd) {
      caughtUp ||= atEnd;
    },
    stopped(error) {
      failure = errorText(error);
      logger[levelOf(error)]({ error: failure }, 'the facts about agents no longer follow the log');
    },
    close: () => waiters.close(),
  };
}
