/**
 * Which sessions each node has on this instance, and which of them is live. Takes a newer hello over, tells a rekey
 * from a reconnect, sees duplicates, and ends sessions that lost their node elsewhere. Not the session itself.
 * Implements `docs/contract/agent-protocol.md#control` (SUPERSEDED), Rekey, and Several instances.
 */
import type { FactRecorder } from '../../commands/port.js';
import type { AgentHello } from '../../gen/svc/control/v1/session.js';
import { SessionCloseReason } from '../../gen/svc/control/v1/session.js';
import { canonicalIp } from '../../kernel/addresses.js';
import { withDeadline, timedOut } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { timestamp } from '../../kernel/clock.js';
import { errorText } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import type { Logger } from '../../kernel/logger.js';
import type { Telemetry } from '../../telemetry/port.js';
import { noteSuperseded, recentSupersedings } from './duplicates.js';
import type { Supersedings } from './duplicates.js';
import type { End } from './close-reasons.js';
import type { LiveSession } from './live-session.js';
import { tuning } from './tuning.js';

export interface NodeSessionsDeps {
  readonly telemetry: Pick<Telemetry, 'sessionOpened' | 'sessionEnded'>;
  readonly facts: Pick<FactRecorder, 'agent'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly instanceId: string;
}

export interface NodeSessions {
  /** An attached session, from its first valid frame to the end of its stream. */
  add(session: LiveSession): void;
  /** Its hello: it becomes the live one. Rejects when presence or the fact can't be recorded. */
  hello(session: LiveSession, hello: AgentHello): Promise<void>;
  ended(session: LiveSession, end: End, agentReason: SessionCloseReason | undefined): void;
  /** An AgentSessionOpened fact, as the log has it, of this or another instance. */
  noteSessionOpened(nodeId: string, sessionId: string, instanceId: string): void;
  /** The lease of this session was taken by another one. */
  lost(nodeId: string, sessionId: string): void;
  revoke(nodeId: string): void;
  /** True once every session that the node has now is gone, false after the time. */
  sessionsEnded(nodeId: string, timeoutMs: number): Promise<boolean>;
  all(): Iterable<LiveSession>;
  readonly size: number;
  /** Forgets nodes of which nothing matters any more. */
  sweep(): void;
}

interface Entry {
  readonly sessions: Set<LiveSession>;
  live: LiveSession | undefined;
  /** The fact that stands for the live session in the log; a rekeyed session goes under its predecessor's. */
  announced: { readonly sessionId: string; seen: boolean } | undefined;
  /** When the agent closed its session for a rekey, monotonic; undefined otherwise. */
  rekeyedAt: number | undefined;
  supersedings: Supersedings;
}

export function createNodeSessions(deps: NodeSessionsDeps): NodeSessions {
  const { clock, logger } = deps;
  const nodes = new Map<string, Entry>();
  /** Those that said hello: only they have a lease to give back. */
  const greeted = new WeakSet<LiveSession>();
  let size = 0;

  const entryOf = (nodeId: string): Entry => {
    let entry = nodes.get(nodeId);
    if (entry === undefined) {
      entry = { sessions: new Set(), live: undefined, announced: undefined, rekeyedAt: undefined, supersedings: [] };
      nodes.set(nodeId, entry);
    }
    return entry;
  };

  const supersede = (entry: Entry, session: LiveSession): void => {
    const noted = noteSuperseded(entry.supersedings, clock.now());
    entry.supersedings = noted.supersedings;
    session.supersede();
    if (!noted.duplicate) return;
    const until = timestamp(clock.now() + limits.agent.duplicateShownMs);
    deps.facts
      .agent(session.nodeId, { type: 'AgentDuplicateSeen', data: { node_id: session.nodeId, until } }, session.id)
      .catch((error: unknown) => {
        logger.warn({ node_id: session.nodeId, error: errorText(error) }, 'a duplicate agent could not be recorded');
      });
  };

  const isRekey = (entry: Entry, session: LiveSession): boolean =>
    entry.rekeyedAt !== undefined &&
    session.openedAt <= entry.rekeyedAt &&
    clock.monotonic() - entry.rekeyedAt <= tuning.rekeyWindowMs;

  const announce = (session: LiveSession, hello: AgentHello): Promise<void> =>
    deps.facts.agent(
      session.nodeId,
      {
        type: 'AgentSessionOpened',
        data: {
          node_id: session.nodeId,
          session_id: session.id,
          instance_id: deps.instanceId,
          agent_version: hello.agentVersion,
          public_ipv4: hello.publicIpv4,
          public_ipv6: hello.publicIpv6,
          detected_addresses: hello.detectedAddresses.map((address) => canonicalIp(address) ?? address),
          multiplex: hello.multiplex,
          multiplex_port: hello.multiplexPort,
        },
      },
      session.id,
    );

  return {
    add(session) {
      const { sessions } = entryOf(session.nodeId);
      sessions.add(session);
      size += 1;
      void session.closed.then(() => {
        sessions.delete(session);
        size -= 1;
      });
    },
    async hello(session, hello) {
      const entry = entryOf(session.nodeId);
      const previous = entry.live;
      const rekey = previous === undefined && isRekey(entry, session);
      entry.live = session;
      greeted.add(session);
      entry.rekeyedAt = undefined;
      if (!rekey || entry.announced === undefined) entry.announced = { sessionId: session.id, seen: false };
      if (previous !== undefined) supersede(entry, previous);
      const opened = deps.telemetry.sessionOpened(session.nodeId, session.presence(), session.offlineAfterMs);
      await Promise.all([opened, rekey ? undefined : announce(session, hello)]);
    },
    ended(session, _end, agentReason) {
      const entry = nodes.get(session.nodeId);
      if (entry === undefined) return;
      if (entry.live === session) {
        entry.live = undefined;
        entry.rekeyedAt = agentReason === SessionCloseReason.REKEY ? clock.monotonic() : undefined;
      }
      if (!greeted.has(session)) return;
      deps.telemetry.sessionEnded(session.nodeId, session.id).catch((error: unknown) => {
        logger.warn({ node_id: session.nodeId, error: errorText(error) }, 'a presence lease could not be released');
      });
    },
    noteSessionOpened(nodeId, sessionId, instanceId) {
      const entry = nodes.get(nodeId);
      if (entry?.live === undefined || entry.announced === undefined) return;
      if (instanceId === deps.instanceId) {
        if (entry.announced.sessionId === sessionId) entry.announced.seen = true;
        return;
      }
      // The log decides which is newer: one that stands before the live session's own fact is older.
      if (entry.announced.seen) supersede(entry, entry.live);
    },
    lost(nodeId, sessionId) {
      const entry = nodes.get(nodeId);
      if (entry?.live?.id === sessionId) supersede(entry, entry.live);
    },
    revoke(nodeId) {
      for (const session of nodes.get(nodeId)?.sessions ?? []) session.revoke();
    },
    async sessionsEnded(nodeId, timeoutMs) {
      const closed = [...(nodes.get(nodeId)?.sessions ?? [])].map((session) => session.closed);
      return (await withDeadline(Promise.all(closed), timeoutMs)) !== timedOut;
    },
    *all() {
      for (const { sessions } of nodes.values()) yield* sessions;
    },
    get size() {
      return size;
    },
    sweep() {
      for (const [nodeId, entry] of nodes) {
        if (entry.sessions.size > 0) continue;
        const rekeying = entry.rekeyedAt !== undefined && clock.monotonic() - entry.rekeyedAt <= tuning.rekeyWindowMs;
        if (!rekeying && recentSupersedings(entry.supersedings, clock.now()).length === 0) nodes.delete(nodeId);
      }
    },
  };
}
