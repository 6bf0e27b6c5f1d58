/**
 * Wires the agent transport together: listener, gRPC server, OpenSession, Control streams, sessions, and the sweep that
 * checks all time limits. `src/app/app.ts` passes in its dependencies. Contains no protocol rules.
 */
import type { Delivery, ServingState } from '../../delivery/port.js';
import { withDeadline } from '../../kernel/background.js';
import { joinTokenIn } from '../../kernel/ids.js';
import { limits } from '../../kernel/limits.js';
import type { SampledLog } from '../../kernel/sampled-log.js';
import { createSeenOnce } from '../../kernel/seen-once.js';
import type { Keyring } from '../../security/keyring.js';
import { openVerifier } from '../../security/psk.js';
import type { ServiceKeys } from '../../security/service-keys.js';
import type { MetricSource } from '../../instance/metrics.js';
import type { Telemetry } from '../../reports/port.js';
import { createAddressBudget, createFaultyCalls, createNodeBudget, createProvenPairs } from './admission/budgets.js';
import { createHandshakeGate } from './admission/handshake-gate.js';
import { createPendingTable } from './admission/pending-table.js';
import { createAddressReports, type ReportAddress } from './address-reports.js';
import type { AgentConnection } from '../listener/connection.js';
import type { AcceptAgent, AgentListenerOptions, Listener, ListenerStats } from '../listener/listener.js';
import { createControlStreams } from './control.js';
import { countIn, createCounters, metricSources, type Counters, type Gauges } from './counters.js';
import { createGrpcServer } from './grpc-server.js';
import { createStrangersBytes } from './guarded-stream.js';
import type { LiveSession, LiveSessionDeps } from './live-session-port.js';
import { createNodeSessions, type NodeSessions, type NodeSessionsDeps } from './node-sessions.js';
import { createOpenSession } from './open-session.js';
import { createReadBudgets, type ReadLimits, type UnfinishedBytes } from './read-budget.js';
import { createSessionWheel, turnMs } from './session-wheel.js';

interface AgentTransportDeps
  extends NodeSessionsDeps, Pick<LiveSessionDeps, 'hasCommands' | 'claimCommands' | 'diagnostics' | 'join'> {
  readonly delivery: Delivery;
  readonly telemetry: Telemetry;
  readonly keyring: Keyring;
  /** Where refused handshakes are counted and logged. */
  readonly refusals: Pick<SampledLog, 'note'>;
  readonly serviceKeys: Pick<ServiceKeys, 'pairOf'>;
  /** `startListener` of `transport/listener`. */
  listen(options: AgentListenerOptions, accept: AcceptAgent): Promise<Listener>;
  /** True while a store is out of reach: no new sessions are opened, existing ones stay. */
  storesAway(): boolean;
  /** Called when a hello reports new public addresses; null: none is known. At most once a minute per node. */
  readonly reportAddress: ReportAddress;
  /** Between 0 and 1, for jitter; default `Math.random`. */
  readonly random?: () => number;
}

export interface AgentTransportOptions {
  readonly listen: { readonly host: string; readonly port: number };
  /** Granted to agents, in seconds. */
  readonly rekeySeconds: number;
  readonly failuresPerAddress: { readonly perSecond: number; readonly burst: number };
  readonly pendingSessions: number;
  /** As a share of one CPU. */
  readonly handshakeCpuShare: number;
  readonly maxConnections: number;
  /** CIDRs of TCP balancers that start each connection with a PROXY protocol v2 header. */
  readonly proxyFrom: readonly string[];
  /** How long admission may take in total, in milliseconds; default 2 s. */
  readonly admissionDelayMs?: number;
  /** The read budget of one node; the contract's numbers by default. */
  readonly reading?: ReadLimits;
  /** Limit of the unfinished messages of all sessions, in bytes; default 256 MiB. */
  readonly unfinishedBytes?: number;
}

export interface AgentTransport extends Pick<NodeSessions, 'noteSessionOpened'> {
  /** True once no session under a former PSK of the node is left on this instance, false after `timeoutMs`. */
  sessionsEnded(nodeId: string, timeoutMs: number): Promise<boolean>;
  /** `host:port`, IPv6 in brackets. */
  readonly address: string;
  stats(): Gauges & Readonly<Counters> & { readonly connections: ListenerStats };
  metrics(): readonly MetricSource[];
  /** Closes every session with DRAINING, waits up to `graceMs` for the agents to leave, then closes their sockets. */
  close(graceMs: number): Promise<void>;
}

/** Messages 1 remembered against replay. */
const replayEntries = 1_000_000;

/** A stream counts as slow when its peer has not taken a fragment for this long. */
const slowAfterMs = 1_000;

/**
 * Starts serving agents.
 * @throws Error if the address cannot be bound
 */
export async function createAgentTransport(
  deps: AgentTransportDeps,
  options: AgentTransportOptions,
): Promise<AgentTransport> {
  const { clock, delivery, logger, telemetry } = deps;
  const counters = createCounters();
  let closing = false;
  const draining = (): boolean => closing || delivery.state().kind !== 'ready' || deps.storesAway();
  const admission = createAdmission(deps, options, counters, draining);
  const { pending } = admission;
  const sessions = createNodeSessions(deps);
  const wheel = createSessionWheel();
  const reports = createAddressReports(deps, deps.reportAddress);
  const unfinished = { total: 0, max: options.unfinishedBytes ?? limits.agent.unfinishedBytesTotal };

  const control = createControl({ deps, options, counters, draining, admission, sessions, wheel, reports, unfinished });

  const { openSession, unsound } = admission;
  const takeBytes = createStrangersBytes(clock);
  const grpc = createGrpcServer({ openSession, control: control.open, unsound, takeBytes }, logger);
  const accept = (connection: AgentConnection): void => {
    if (closing) return connection.destroy();
    grpc.accept(connection);
  };
  const { maxConnections, proxyFrom } = options;
  const listener = await deps
    .listen({ ...options.listen, maxConnections, proxyFrom, clock, logger, refusals: deps.refusals }, accept)
    .catch((error: unknown) => {
      grpc.close();
      throw error;
    });

  const drainAll = (): void => {
    pending.clear();
    control.drain();
    for (const session of sessions.all()) session.drain();
  };
  const isOver = (one: Pick<LiveSession, 'nodeId' | 'psk'>): boolean =>
    !delivery.psks(one.nodeId).some(({ fingerprint }) => fingerprint === one.psk.fingerprint);
  const unsubscribe = [
    delivery.onRevoked((nodeId) => {
      pending.dropNode(nodeId);
      sessions.revoke(nodeId);
    }),
    delivery.onPsksEnded((nodeId) => {
      pending.dropThose((one) => (nodeId === undefined || one.nodeId === nodeId) && isOver(one));
      sessions.revokeThose(nodeId, isOver);
    }),
    delivery.onStateChange((state: ServingState) => {
      // Although cut off from the log, it may have missed nothing, and no other instance would be better off.
      if (state.kind !== 'ready' && state.kind !== 'cut_off') drainAll();
    }),
    telemetry.onLost((nodeId, sessionId) => sessions.lost(nodeId, sessionId)),
  ];
  const sweep = setInterval(() => {
    const now = clock.monotonic();
    pending.sweep(now);
    control.sweep(now);
    if (!wheel.turn()) return;
    sessions.sweep();
    reports.sweep();
  }, turnMs);
  sweep.unref();

  const gauges = (): Gauges => ({
    ...countSessions(sessions.all(), clock.monotonic()),
    pending: pending.size,
    waiting: admission.waiting(),
    unfinishedBytes: unfinished.total,
  });

  return {
    address: listener.address,
    noteSessionOpened: sessions.noteSessionOpened,
    sessionsEnded: (nodeId, timeoutMs) => sessions.sessionsEnded(nodeId, timeoutMs, isOver),
    stats: () => ({ ...gauges(), ...counters, connections: listener.stats() }),
    metrics: () => metricSources(counters, gauges, () => listener.stats()),
    async close(graceMs) {
      if (closing) return;
      closing = true;
      listener.stop();
      admission.close();
      drainAll();
      const flushMs = Math.min(graceMs, limits.agent.closeGraceMs);
      // Streams that do not end in time are cut by their own timers, or by the listener.
      await withDeadline(Promise.all(Array.from(sessions.all(), ({ closed }) => closed)), flushMs);
      clearInterval(sweep);
      for (const stop of unsubscribe) stop();
      // The status of an ended stream may still be in flight, so the sockets are not closed yet.
      grpc.drain(flushMs);
      await listener.close(flushMs);
      grpc.close();
    },
  };
}

interface ControlParts {
  readonly deps: AgentTransportDeps;
  readonly options: AgentTransportOptions;
  readonly counters: Counters;
  draining(): boolean;
  readonly admission: ReturnType<typeof createAdmission>;
  readonly sessions: ReturnType<typeof createNodeSessions>;
  readonly wheel: ReturnType<typeof createSessionWheel>;
  readonly reports: ReturnType<typeof createAddressReports>;
  readonly unfinished: UnfinishedBytes;
}

/** The Control streams, and what their sessions do to the other parts. */
function createControl({ deps, options, counters, admission, sessions, wheel, reports, ...parts }: ControlParts) {
  const { clock } = deps;
  return createControlStreams({
    clock,
    pending: admission.pending,
    draining: parts.draining,
    onUnattached(reason, { connection }) {
      countIn(counters.ends, reason.cause);
      if (reason.cause === 'draining') return;
      const event = { reason: `control_${reason.cause}`, address: connection.remoteAddress };
      deps.refusals.note(event, 'a Control stream was refused to an agent');
    },
    session: {
      ...deps,
      random: deps.random ?? Math.random,
      rekeySeconds: options.rekeySeconds,
      counters,
      unfinished: parts.unfinished,
      readBudget: createReadBudgets(clock, options.reading),
      onThrottled: wheel.throttled,
      onProven(session, connection) {
        admission.proven(connection.remoteAddress, session.nodeId);
        sessions.add(session);
        wheel.add(session);
        connection.watch(undefined);
        connection.sessionOpened();
        void session.closed.then(() => connection.sessionEnded());
      },
      async onHello(session, hello) {
        reports.hello(session.nodeId, hello);
        await sessions.hello(session, hello);
      },
      onEnded: (session, reason, agentReason) => sessions.ended(session, reason, agentReason),
    },
  });
}

/** OpenSession with its budgets and bounds, and the effects of a session's later life on them. */
function createAdmission(
  deps: AgentTransportDeps,
  options: AgentTransportOptions,
  counters: Counters,
  draining: () => boolean,
) {
  const { clock, delivery, keyring, refusals } = deps;
  const addresses = createAddressBudget(options.failuresPerAddress.perSecond, options.failuresPerAddress.burst, clock);
  const provenPairs = createProvenPairs(clock);
  const pending = createPendingTable(() => gate.poke());
  const gate = createHandshakeGate({
    clock,
    maxSessions: options.pendingSessions,
    cpuShare: options.handshakeCpuShare,
    pending: () => pending.size,
  });
  const openSession = createOpenSession({
    delivery,
    openVerifier: (nodeId, sealed) => openVerifier(keyring, sealed, joinTokenIn(nodeId) ?? nodeId),
    serviceKeys: deps.serviceKeys,
    clock,
    refusals,
    addresses,
    provenPairs,
    chargeNode: createNodeBudget(clock),
    gate,
    replays: createSeenOnce(replayEntries),
    pending,
    rekeySeconds: options.rekeySeconds,
    admissionDelayMs: options.admissionDelayMs ?? limits.agent.admissionDelayMs,
    draining,
    count: (outcome) => countIn(counters.handshakes, outcome),
  });
  return {
    openSession,
    pending,
    unsound: createFaultyCalls(addresses, refusals),
    waiting: () => gate.waiting,
    /** A session has shown that it has the keys. */
    proven(address: string, nodeId: string): void {
      if (joinTokenIn(nodeId) === undefined) provenPairs.proven(address, nodeId);
    },
    close(): void {
      addresses.close();
      gate.close();
    },
  };
}

function countSessions(
  all: Iterable<LiveSession>,
  now: number,
): Pick<Gauges, 'sessions' | 'slowStreams' | 'throttledSessions'> {
  const counts = { sessions: 0, slowStreams: 0, throttledSessions: 0 };
  for (const session of all) {
    counts.sessions += 1;
    if (session.slowFor(now) > slowAfterMs) counts.slowStreams += 1;
    if (session.throttled) counts.throttledSessions += 1;
  }
  return counts;
}
