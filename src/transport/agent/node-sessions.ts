/**
 * The sessions of each node on this instance, and which of them is live. Supersedes the older session at a newer hello,
 * tells a rekey from a reconnect, notices duplicate agents, and ends sessions whose node is now live on another
 * instance. The session itself is `session.ts`. Implements SUPERSEDED of `docs/contract/agent-protocol.md#control`,
 * `docs/contract/agent-protocol.md#rekey` and `docs/contract/agent-protocol.md#several-instances`.
 */
import type { FactRecorder } from '../../commands/port.js';
import type { AgentEvent } from '../../domain/agents/facts.js';
import { SessionCloseReason, type AgentHello } from '../../gen/svc/control/v1/session.js';
import { canonicalIp } from '../../kernel/addresses.js';
import { withDeadline, timedOut } from '../../kernel/background.js';
import { timestamp, type Clock } from '../../kernel/clock.js';
import { limits } from '../../kernel/limits.js';
import { logsWarning, type LogFields, type Logger } from '../../kernel/logger.js';
import { getOrMake } from '../../kernel/maps.js';
import type { Telemetry } from '../../reports/port.js';
import type { CloseReason } from './close-reasons.js';
import type { LiveSession } from './live-session-port.js';

/** A hello within this time after the predecessor's SessionClose REKEY counts as its rekey. */
const rekeyWindowMs = 20_000;

export interface NodeSessionsDeps {
  readonly telemetry: Pick<Telemetry, 'sessionOpened' | 'sessionEnded'>;
  /**
   * Makes the candidate PSK under which a session was proven the node's PSK. False if it is no longer a candidate;
   * rejects when that cannot be known now.
   */
  proveCandidate(nodeId: string, fingerprint: string, sessionId: string): Promise<boolean>;
  readonly facts: Pick<FactRecorder, 'agent' | 'drop'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The log that gets a line for each change of a session. */
  readonly sessionLog: Logger;
  readonly instanceId: string;
}

/** An agent's version is cut to this many characters. */
const versionChars = 64;

const reasonNames = new Map<number, string>(
  Object.entries(SessionCloseReason).map(([name, number]) => [number, name.toLowerCase()]),
);

const named = ({ nodeId, id, address }: LiveSession): LogFields => ({ node_id: nodeId, session_id: id, address });

interface Entry {
  readonly sessions: Set<LiveSession>;
  /** Presence leases of ended sessions that are being released. */
  readonly releasing: Set<Promise<void>>;
  live: LiveSession | undefined;
  /** The fact that represents the live session in the log. A session that replaces another by rekey keeps its fact. */
  announced: { readonly sessionId: string; readonly at: string; seen: boolean } | undefined;
  /** When the agent closed its live session with REKEY, monotonic; undefined if it did not. */
  rekeyedAt: number | undefined;
  supersedings: Supersedings;
}

const emptyEntry = (): Entry => ({
  sessions: new Set(),
  releasing: new Set(),
  live: undefined,
  announced: undefined,
  rekeyedAt: undefined,
  supersedings: [],
});

/** Which session of each node is live, and what the log and presence are told of it. */
function createLiveSessions(deps: NodeSessionsDeps, nodes: Map<string, Entry>) {
  const { clock, logger } = deps;
  /** Sessions that have said hello and not ended: only they hold a presence lease. */
  const greeted = new Set<LiveSession>();

  /** @param by the session or instance that has the node now, if known */
  const supersede = (entry: Entry, session: LiveSession, by: LogFields): void => {
    // Reports of the older session would look newer than the newer session's.
    deps.facts.drop(session.nodeId, ({ request_id }) => request_id === session.id);
    const { supersedings, duplicate } = noteSuperseded(entry.supersedings, clock.monotonic());
    entry.supersedings = supersedings;
    deps.sessionLog.info({ ...named(session), ...by, duplicate }, 'agent session superseded');
    session.supersede();
    if (!duplicate) return;
    const until = timestamp(clock.now() + limits.agent.duplicateShownMs);
    deps.facts
      .agent(session.nodeId, { type: 'AgentDuplicateSeen', data: { node_id: session.nodeId, until } }, session.id)
      .catch(logsWarning(logger, 'cannot record a duplicate agent', { node_id: session.nodeId }));
  };

  return {
    /**
     * Makes the session the node's live one, and its PSK the node's. Rejects if its presence or the fact cannot be recorded now.
     */
    async hello(session: LiveSession, hello: AgentHello): Promise<void> {
      const { nodeId, id, psk } = session;
      if (psk.isCandidate) {
        if (!(await deps.proveCandidate(nodeId, psk.fingerprint, id))) session.revoke();
        if (session.over) return;
      }
      const entry = getOrMake(nodes, session.nodeId, emptyEntry);
      const { live: previous, rekeyedAt } = entry;
      // A successor is opened before the old session is closed with REKEY; a session opened later is a reconnect.
      const rekey =
        previous === undefined && isRecentRekey(rekeyedAt, clock.monotonic()) && session.openedAt <= rekeyedAt;
      entry.live = session;
      greeted.add(session);
      entry.rekeyedAt = undefined;
      if (!rekey || entry.announced === undefined) {
        entry.announced = { sessionId: session.id, at: timestamp(clock.now()), seen: false };
      }
      deps.sessionLog.info(
        { ...named(session), agent_version: hello.agentVersion.slice(0, versionChars), rekey },
        'agent session opened',
      );
      if (previous !== undefined) supersede(entry, previous, { by_session_id: session.id });
      const opened = deps.telemetry.sessionOpened(session.nodeId, session.presence(), session.offlineAfterMs);
      const fact = openedFact(session, hello, deps.instanceId);
      await Promise.all([opened, rekey ? undefined : deps.facts.agent(session.nodeId, fact, session.id)]);
    },
    ended(session: LiveSession, { cause }: CloseReason, agentReason: SessionCloseReason | undefined): void {
      const age = Math.round(clock.monotonic() - session.openedAt);
      const agent_reason = agentReason === undefined ? null : (reasonNames.get(agentReason) ?? String(agentReason));
      deps.sessionLog.info({ ...named(session), cause, agent_reason, duration_ms: age }, 'agent session closed');
      const held = greeted.delete(session);
      const entry = nodes.get(session.nodeId);
      if (entry === undefined) return;
      if (entry.live === session) {
        entry.live = undefined;
        entry.rekeyedAt = agentReason === SessionCloseReason.REKEY ? clock.monotonic() : undefined;
      }
      if (!held) return;
      const released = deps.telemetry
        .sessionEnded(session.nodeId, session.id, agentReason === SessionCloseReason.NORMAL)
        .catch(logsWarning(logger, 'cannot release a presence lease', { node_id: session.nodeId }))
        .finally(() => entry.releasing.delete(released));
      entry.releasing.add(released);
    },
    /**
     * Must be called for every AgentSessionOpened event of every instance, in log order.
     * @param at when the session was opened, RFC 3339
     */
    noteSessionOpened(nodeId: string, sessionId: string, instanceId: string, at: string): void {
      const entry = nodes.get(nodeId);
      const own = entry?.live === undefined ? undefined : entry.announced;
      if (instanceId === deps.instanceId) {
        if (own?.sessionId === sessionId) own.seen = true;
        return;
      }
      // Newer means later in the log and opened later: the fact of an instance that was cut off arrives late.
      if (own !== undefined && (!own.seen || at <= own.at)) return;
      // Waiting reports of earlier sessions would look newer than its own.
      deps.facts.drop(nodeId, ({ occurred_at }) => occurred_at < at);
      if (entry?.live !== undefined) {
        supersede(entry, entry.live, { by_session_id: sessionId, by_instance_id: instanceId });
      }
    },
    /** Another session has taken this one's presence lease. */
    lost(nodeId: string, sessionId: string): void {
      const entry = nodes.get(nodeId);
      if (entry?.live?.id === sessionId) supersede(entry, entry.live, {});
    },
  };
}

export type NodeSessions = ReturnType<typeof createNodeSessions>;

export function createNodeSessions(deps: NodeSessionsDeps) {
  const { clock } = deps;
  const nodes = new Map<string, Entry>();
  function* all(): Iterable<LiveSession> {
    for (const { sessions } of nodes.values()) yield* sessions;
  }

  return {
    ...createLiveSessions(deps, nodes),
    /** Adds an attached session, from its first valid frame to the end of its stream. */
    add(session: LiveSession): void {
      const { sessions } = getOrMake(nodes, session.nodeId, emptyEntry);
      sessions.add(session);
      void session.closed.then(() => sessions.delete(session));
    },
    revoke(nodeId: string): void {
      for (const session of nodes.get(nodeId)?.sessions ?? []) session.revoke();
    },
    /** Revokes the sessions that are over, of a node or of all nodes. */
    revokeThose(nodeId: string | undefined, isOver: (session: LiveSession) => boolean): void {
      const those = nodeId === undefined ? [...all()] : [...(nodes.get(nodeId)?.sessions ?? [])];
      for (const session of those) if (isOver(session)) session.revoke();
    },
    /** True once the sessions of the node that are over now are gone, false after `timeoutMs`. */
    async sessionsEnded(
      nodeId: string,
      timeoutMs: number,
      isOver: (session: LiveSession) => boolean,
    ): Promise<boolean> {
      const entry = nodes.get(nodeId);
      if (entry === undefined) return true;
      const ended = async (): Promise<void> => {
        const those = [...entry.sessions].filter((session) => session.over || isOver(session));
        await Promise.all(those.map((session) => session.closed));
        await Promise.all(entry.releasing);
      };
      return (await withDeadline(ended(), timeoutMs)) !== timedOut;
    },
    all,
    /** Forgets nodes without sessions, unless a rekey or a recent SUPERSEDED still counts. */
    sweep(): void {
      for (const [nodeId, { sessions, rekeyedAt, supersedings }] of nodes) {
        if (sessions.size > 0 || isRecentRekey(rekeyedAt, clock.monotonic())) continue;
        if (recentSupersedings(supersedings, clock.monotonic()).length === 0) nodes.delete(nodeId);
      }
    },
  };
}

/** Recent enough for the rekeyed session's successor to say hello. */
const isRecentRekey = (rekeyedAt: number | undefined, now: number): rekeyedAt is number =>
  rekeyedAt !== undefined && now - rekeyedAt <= rekeyWindowMs;

/** The parts of a hello that the log keeps. */
function openedFact(session: LiveSession, hello: AgentHello, instanceId: string): AgentEvent {
  return {
    type: 'AgentSessionOpened',
    data: {
      node_id: session.nodeId,
      session_id: session.id,
      instance_id: instanceId,
      agent_version: hello.agentVersion,
      public_ipv4: canonicalIp(hello.publicIpv4) ?? '',
      public_ipv6: canonicalIp(hello.publicIpv6) ?? '',
      detected_addresses: hello.detectedAddresses.flatMap((address) => canonicalIp(address) ?? []),
      multiplex: hello.multiplex,
      multiplex_port: hello.multiplexPort,
      features: [...new Set(hello.features)].filter(({ length }) => length <= limits.agent.featureChars).sort(),
    },
  };
}

/** When a node's sessions were closed with SUPERSEDED, monotonic milliseconds; only the ones that still count. */
type Supersedings = readonly number[];

/** At a node's second SUPERSEDED within 5 minutes, two agents seem to share one PSK. @internal exported for tests */
export function noteSuperseded(
  earlier: Supersedings,
  now: number,
): { readonly supersedings: Supersedings; readonly duplicate: boolean } {
  const recent = recentSupersedings(earlier, now);
  return { supersedings: [...recent, now].slice(-2), duplicate: recent.length > 0 };
}

function recentSupersedings(earlier: Supersedings, now: number): Supersedings {
  return earlier.filter((at) => now - at <= limits.agent.duplicateWindowMs);
}
