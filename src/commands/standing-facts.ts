/**
 * Writes the standing facts of nodes again before they expire. Each instance does so for the nodes whose session it holds;
 * one instance, under a lease, does so for all others. Appends expect the stream's revision, so a write never follows a
 * newer fact, and two instances never write the same. `src/domain/agents/facts.ts` makes the facts. Implements
 * `docs/contract/domain.md#one-consistency-boundary-the-fleet`, "what expires never changes what is shown".
 */
import type { NodeAgentFacts } from '../domain/agents/node-agent-facts.js';
import { standingFacts } from '../domain/agents/standing-facts.js';
import { proposedFact } from '../domain/log/fact.js';
import { sleep, startLoop } from '../kernel/background.js';
import { timestamp, type Clock } from '../kernel/clock.js';
import { agentsStream, type ProposedEvent } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import { backoff } from '../kernel/retry.js';
import { eventBytes } from '../storage/event-json.js';
import { lastRevision, type EventStore, type ExpectedRevision } from '../storage/event-store.js';
import type { Leases } from '../storage/read-store.js';
import { agentContext } from './system.js';
import { tuning } from './tuning.js';

/** A node with the facts about its agent. */
interface KnownNode {
  readonly id: string;
  readonly agent: NodeAgentFacts;
}

export interface StandingFactsDeps {
  readonly eventStore: Pick<EventStore, 'append' | 'read'>;
  readonly leases: Pick<Leases, 'acquire' | 'release'>;
  readonly instanceId: string;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  readonly facts: {
    of(nodeId: string): NodeAgentFacts;
    /** True once an event of the log is among them, false after `timeoutMs`. */
    holds(stream: string, revision: number, timeoutMs: number): Promise<boolean>;
  };
  nodeIds(): Iterable<string>;
  /** The instance that holds the session of a node; undefined if it is offline. */
  holderOf(nodeId: string): string | undefined;
}

export interface StandingFacts {
  /** Checks every node once. @returns how many nodes' facts it has written @throws ServiceError `unavailable` */
  turn(signal: AbortSignal): Promise<number>;
  /** How many nodes' facts were written since the start. */
  written(): number;
  /** The age of the oldest standing facts after the last turn, in seconds. */
  oldestSeconds(): number;
  close(): Promise<void>;
}

const leaseKind = 'jobs';
const leaseName = 'standing_facts';
const day = 24 * 3600 * 1000;

/**
 * The age of a node's standing facts in milliseconds; undefined for a node whose agent has never connected. Facts from a
 * clock that was ahead count as old, because their age is unknown.
 */
function ageOf({ written_since }: NodeAgentFacts, now: number): number | undefined {
  if (written_since === undefined) return undefined;
  const age = now - Date.parse(written_since);
  return age < -limits.clocks.apartMs ? tuning.standingFactsDays * day : age;
}

/** The standing facts of a node, as one command. */
function proposed({ id, agent }: KnownNode, ids: Ids, now: number): readonly ProposedEvent[] {
  const standing = standingFacts(id, agent, timestamp(now));
  const command = { id: ids.next(), count: standing.length };
  const context = agentContext(id, 'standing facts');
  return standing.map(({ event, at }, index) =>
    proposedFact(event, ids, { ...context, at, command: { ...command, index } }),
  );
}

/** The facts of the first nodes, as many as fit into one append, at least one. */
function group(
  nodes: readonly KnownNode[],
  ids: Ids,
  now: number,
): { taken: number; events: readonly ProposedEvent[] } {
  const events: ProposedEvent[] = [];
  let [bytes, taken] = [0, 0];
  for (const node of nodes) {
    const ofNode = proposed(node, ids, now);
    bytes += ofNode.reduce((sum, event) => sum + eventBytes(event), 0);
    const tooMuch = events.length + ofNode.length > limits.events.appendEvents || bytes > limits.events.appendBytes;
    if (taken > 0 && tooMuch) break;
    events.push(...ofNode);
    taken += 1;
  }
  return { taken, events };
}

/** @internal exported for tests */
export function createStandingFacts(deps: StandingFactsDeps): StandingFacts {
  const { clock, eventStore, facts, ids, instanceId, leases, logger } = deps;
  const known = (id: string): KnownNode => ({ id, agent: facts.of(id) });
  let written = 0;
  let oldestSeconds = 0;

  /** Writes the facts that are still due, of nodes of one stream. */
  const writeStream = async (
    stream: string,
    nodeIds: readonly string[],
    isDue: (node: KnownNode) => boolean,
    signal: AbortSignal,
  ): Promise<void> => {
    /** The stream's last revision according to an append, when its last event has expired. */
    let unreadable: ExpectedRevision = 'no_stream';
    let tries = 0;
    while (tries < tuning.standingFactsTries && !signal.aborted) {
      const head = await lastRevision(eventStore, stream);
      if (head !== undefined && !(await facts.holds(stream, head, tuning.standingFactsWaitMs))) return;
      const due = nodeIds.map(known).filter(isDue);
      if (due.length === 0) return;
      const { taken, events } = group(due, ids, clock.now());
      const outcome = await eventStore.append(stream, head ?? unreadable, events);
      if (outcome.kind === 'appended') {
        written += taken;
        tries = 0;
        await facts.holds(stream, outcome.revision, tuning.standingFactsWaitMs);
        await sleep(tuning.standingFactsPauseMs, signal);
        continue;
      }
      tries += 1;
      if (outcome.kind === 'conflict') unreadable = outcome.actual;
      else logger.warn({ stream, outcome: outcome.kind }, 'standing facts could not be written again yet');
      await sleep(backoff(tuning.factRetry, tries), signal);
    }
  };

  return {
    async turn(signal) {
      const before = written;
      // Held from turn to turn, so that the same instance serves the nodes without a session.
      const leads = await leases.acquire(leaseKind, {
        name: leaseName,
        holder: instanceId,
        ttlMs: 2 * tuning.standingFactsEveryMs,
        data: null,
      });
      const isDue = ({ id, agent }: KnownNode): boolean => {
        const age = ageOf(agent, clock.now());
        if (age === undefined) return false;
        if (deps.holderOf(id) === instanceId) return age >= tuning.standingFactsHeldDays * day;
        return leads && age >= tuning.standingFactsDays * day;
      };
      const byStream = new Map<string, string[]>();
      for (const node of Array.from(deps.nodeIds(), known)) {
        if (!isDue(node)) continue;
        const stream = agentsStream(node.id);
        byStream.set(stream, [...(byStream.get(stream) ?? []), node.id]);
      }
      for (const [stream, nodeIds] of byStream) await writeStream(stream, nodeIds, isDue, signal);
      let oldest = 0;
      for (const id of deps.nodeIds()) oldest = Math.max(oldest, ageOf(facts.of(id), clock.now()) ?? 0);
      oldestSeconds = Math.round(oldest / 1000);
      if (written > before) logger.info({ nodes: written - before }, 'standing facts were written again');
      return written - before;
    },
    written: () => written,
    oldestSeconds: () => oldestSeconds,
    async close() {
      await leases.release(leaseKind, leaseName, instanceId).catch(() => undefined);
    },
  };
}

/** Runs a turn now and then, for as long as the instance runs. @param readOnly why it may not write now */
export function keepStandingFacts(
  deps: StandingFactsDeps,
  readOnly: () => string | undefined,
): Omit<StandingFacts, 'turn'> {
  const { clock, logger } = deps;
  const standing = createStandingFacts(deps);
  let nextAt = 0;
  const loop = startLoop(
    tuning.standingFactsFirstMs,
    async (signal) => {
      if (clock.monotonic() < nextAt || readOnly() !== undefined) return;
      await standing.turn(signal);
      nextAt = clock.monotonic() + tuning.standingFactsEveryMs;
    },
    logsWarning(logger, 'standing facts could not be written again'),
  );
  return {
    ...standing,
    async close() {
      await loop.close();
      await standing.close();
    },
  };
}
