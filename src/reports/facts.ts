/**
 * What agents did according to the log: for each node the fold of its facts in `svc-agents-*`, in memory, with a checkpoint. It
 * also follows the fleet, because a deleted or restored node starts without facts. Holds no telemetry. Implements
 * `docs/contract/rest.md#nodes` (`apply`, `duplicate_agent`, `version_conflict_at`) and
 * `docs/contract/domain.md#one-consistency-boundary-the-fleet`.
 */
import { logsError } from '../kernel/logger.js';
import { agentEvent, type AgentEvent } from '../domain/agents/facts.js';
import { evolveAgentFacts, neverConnected, type NodeAgentFacts } from '../domain/agents/node-agent-facts.js';
import { fleetEvent } from '../domain/fleet/resources.js';
import { agentStreams, streams, type RecordedEvent } from '../kernel/event.js';
import { createListeners } from '../kernel/listeners.js';
import { openFactFold, type FactFold, type FactFoldDeps } from '../projections/fact-fold.js';

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
export interface AgentFactsFold extends AgentFacts, FactFold {
  moved(distance: unknown, caughtUp: boolean): void;
}

/** Raise the version when the fold's state or meaning changes: older checkpoints are then ignored. */
const kind = { name: 'svc-agents', foldVersion: 3 } as const;

/** An existing node with its facts; null: it has none yet. */
type Line = readonly [nodeId: string, facts: NodeAgentFacts | null];

/** Loads the checkpoint. @throws ServiceError `unavailable` */
export async function openAgentFacts(deps: FactFoldDeps): Promise<AgentFactsFold> {
  /** Every existing node. */
  const nodes = new Map<string, NodeAgentFacts>();
  let caughtUp = false;
  const listeners = createListeners<RecordedFact>(logsError(deps.logger, 'a listener for agent facts failed'));

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

  const fold = await openFactFold<Line>(deps, {
    kind,
    streams: [streams.fleet, ...agentStreams],
    name: 'facts of agents',
    restore: ([nodeId, facts]) => void nodes.set(nodeId, facts ?? neverConnected),
    lines: () => [...nodes].map(([id, facts]): Line => [id, facts === neverConnected ? null : facts]),
    take: (event) => (event.stream === streams.fleet ? takeLife(event) : takeFact(event)),
  });
  return {
    ...fold,
    of: (nodeId) => nodes.get(nodeId) ?? neverConnected,
    onFact: listeners.add,
    caughtUp: () => caughtUp,
    moved(_distance, atEnd) {
      caughtUp ||= atEnd;
    },
  };
}
