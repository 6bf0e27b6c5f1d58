/**
 * Keeps one live session with the service for as long as the agent runs: connects, waits after a loss, and replaces the
 * session before its keys are too old. A disconnect changes nothing on the node. Implements the agent's side of
 * `docs/contract/agent-protocol.md#rekey`, and its reactions to a session's end from
 * `docs/contract/agent-protocol.md#control`.
 */
import type { ConfigApplyReport, RuntimeConfigSnapshot } from '../../gen/svc/control/v1/config.js';
import type { DiagnosticsReport } from '../../gen/svc/control/v1/diagnostics.js';
import { SessionCloseReason, type AgentHello } from '../../gen/svc/control/v1/session.js';
import { sleep } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { errorText } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import type { Logger } from '../../kernel/logger.js';
import { backoff } from '../../kernel/retry.js';
import type { AgentConfig } from '../config.js';
import type { ClockOffset } from '../diagnosis/diagnose.js';
import type { Gateway } from '../gateway.js';
import type { HostUsage } from '../host.js';
import { createControlClient, type ControlClient, type OpenedSession } from './client.js';
import { createReconnectPace, rekeyDelay, type ConnectionEnd } from './reconnect.js';
import { startSession, type Session, type SessionDependencies } from './session.js';
import { createSoon } from './soon.js';

/** Heartbeats beside the regular ones. The service reads two payloads a second, 20 at once, regular ones included. */
const extraHeartbeats = { perSecond: 1, burst: 10 } as const;
// docs/contract/agent-protocol.md#the-reference-agent
const extraMetrics = { perSecond: 1 / 5, burst: 1 } as const;

export interface SessionEvents {
  /** The service has answered on the first session after the start or after a loss. */
  onConnected?(): void;
  onDisconnected?(end: ConnectionEnd, retryInMs: number): void;
  /** A rekey has replaced the session. */
  onRekeyed?(): void;
  onReport?(report: ConfigApplyReport): void;
}

interface SessionLoopOptions {
  readonly config: Pick<AgentConfig, 'nodeId' | 'endpoint' | 'keys' | 'rekeyIntervalSeconds'>;
  readonly agentVersion: string;
  readonly gateway: Gateway;
  readonly hello: () => AgentHello;
  /** Answers RUN_DIAGNOSTICS; an abort of the signal ends it early. */
  readonly diagnose: (offset: ClockOffset | undefined, signal: AbortSignal) => Promise<DiagnosticsReport>;
  readonly usage: () => HostUsage;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: SessionEvents;
}

export interface SessionLoop {
  /** True from the service's first answer until the session is lost; a rekey does not interrupt it. */
  readonly connected: boolean;
  /** Ends the session with SessionClose NORMAL and stops connecting. */
  close(): Promise<void>;
}

export function startSessionLoop(options: SessionLoopOptions): SessionLoop {
  const { config, gateway, logger, clock, random, events } = options;
  const stop = new AbortController();
  const offset = { milliseconds: 0 };
  let current: Session | undefined;
  let measured: ClockOffset | undefined;
  let connected = false;
  const pace = createReconnectPace(random);
  let sequence = 0n;
  // The next session starts with its own heartbeat.
  const heartbeat = createSoon(extraHeartbeats, clock, () => {
    current?.beat();
    return true;
  });
  const metrics = createSoon(extraMetrics, clock, () => current?.measure() === true);
  gateway.watch({ onUpstreams: metrics.ask, onRoutes: heartbeat.ask });

  const applier = createApplier(
    gateway,
    (report) => {
      current?.report(report);
      heartbeat.ask();
      events.onReport?.(report);
    },
    (error) => logger.error({ error: errorText(error) }, 'cannot apply a snapshot'),
  );

  let diagnosing: Promise<void> | undefined;
  let diagnosis: DiagnosticsReport | undefined;
  const tellDiagnosis = (): void => {
    if (diagnosis !== undefined && current?.diagnosed(diagnosis) === true) diagnosis = undefined;
  };
  const diagnose = async (): Promise<void> => {
    try {
      diagnosis = await options.diagnose(measured, stop.signal);
      tellDiagnosis();
    } catch (error) {
      logger.error({ error: errorText(error) }, 'the diagnosis failed');
    }
    diagnosing = undefined;
  };

  const dependencies: SessionDependencies = {
    nodeId: config.nodeId,
    gateway,
    logger,
    clock,
    random,
    usage: options.usage,
    hello: options.hello,
    nextSequence: () => (sequence += 1n),
    lastReport: () => applier.lastReport,
    onSnapshot: applier.offer,
    // One at a time: a report answers every command that came before it.
    onDiagnose: () => void (diagnosing ??= diagnose()),
    onAnswer: () => {
      pace.answered();
      if (connected) return;
      connected = true;
      logger.info({}, 'connected to the service');
      events.onConnected?.();
    },
  };

  /** Runs one connection, from its first session to the end of its last. */
  const runConnection = async (client: ControlClient): Promise<ConnectionEnd> => {
    const first = await client.open(stop.signal);
    if (!first.ok) return { kind: 'refused', ...first.error };
    pace.opened();
    let opened: OpenedSession = first.value;
    for (;;) {
      const rekeyMs = rekeyDelay(config.rekeyIntervalSeconds, opened.grant.rekeyAfterSecs, random);
      const session = startSession(opened, dependencies);
      current = session;
      measured = opened.clockOffset;
      metrics.retry();
      tellDiagnosis();
      const next = await untilReplaced(options, client, session, rekeyMs, stop.signal);
      if (next.kind === 'ended') return next.end;
      // Make before break: the new session is open before the old one is closed. An old session closed with REKEY is
      // never superseded, and late messages on it are ignored.
      await session.close(next.kind === 'stop' ? SessionCloseReason.NORMAL : SessionCloseReason.REKEY);
      if (next.kind === 'stop') return { kind: 'lost', detail: 'stopped' };
      opened = next.opened;
      logger.info({}, 'session rekeyed');
      events.onRekeyed?.();
    }
  };

  const run = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      const client = createControlClient({ ...config, agentVersion: options.agentVersion, clock, offset });
      let end: ConnectionEnd;
      try {
        end = await runConnection(client);
      } catch (error) {
        end = { kind: 'lost', detail: errorText(error) };
      } finally {
        current = undefined;
        client.close();
      }
      if (stop.signal.aborted) break;
      connected = false;
      const delay = pace.after(end);
      logEnd(logger, end, delay);
      events.onDisconnected?.(end, delay);
      await sleep(delay, stop.signal);
    }
    connected = false;
  };
  const done = run();

  return {
    get connected() {
      return connected;
    },
    async close() {
      stop.abort();
      await done;
      heartbeat.close();
      metrics.close();
      await applier.close();
      await diagnosing;
    },
  };
}

type Next =
  | { readonly kind: 'ended'; readonly end: ConnectionEnd }
  | { readonly kind: 'stop' }
  | { readonly kind: 'rekey'; readonly opened: OpenedSession };

/**
 * Waits until the session ends, the agent stops, or a rekey has opened a new session, whichever comes first.
 * @param rekeyMs until the rekey starts
 */
async function untilReplaced(
  { logger, random }: Pick<SessionLoopOptions, 'logger' | 'random'>,
  client: ControlClient,
  session: Session,
  rekeyMs: number,
  stopped: AbortSignal,
): Promise<Next> {
  const ended = new AbortController();
  let end: ConnectionEnd | undefined;
  void session.ended.then((value) => {
    end = value;
    ended.abort();
  });
  const over = AbortSignal.any([stopped, ended.signal]);
  await sleep(rekeyMs, over);
  for (let failures = 0; !over.aborted; failures += 1) {
    const replacement = await client.open(over);
    if (replacement.ok && !over.aborted) return { kind: 'rekey', opened: replacement.value };
    if (replacement.ok) {
      replacement.value.discard();
      break;
    }
    logger.warn({ status: replacement.error.status, detail: replacement.error.detail }, 'rekey refused, will retry');
    await sleep(backoff(limits.agentControl.reconnect, failures, random), over);
  }
  return end === undefined ? { kind: 'stop' } : { kind: 'ended', end };
}

function logEnd(logger: Logger, end: ConnectionEnd, delay: number): void {
  const retry_in_ms = Math.round(delay);
  if (end.kind === 'refused') {
    const detail = `session refused with gRPC status ${end.status}: ${end.detail}`;
    return logger.warn({ detail, retry_in_ms }, 'connection lost');
  }
  if (end.kind === 'lost') return logger.warn({ detail: end.detail, retry_in_ms }, 'connection lost');
  const { reason, message } = end.close;
  const name = Object.entries(SessionCloseReason).find(([, value]) => value === reason)?.[0] ?? String(reason);
  if (reason === SessionCloseReason.REVOKED) {
    return logger.error({ retry_in_ms }, 'the control PSK was revoked: restart the agent with the new one');
  }
  if (reason === SessionCloseReason.SUPERSEDED) {
    return logger.error({ retry_in_ms }, 'session superseded: another agent uses the PSK of this node');
  }
  logger.warn({ reason: name, message, retry_in_ms }, 'the service closed the session');
}

interface Applier {
  offer(snapshot: RuntimeConfigSnapshot): void;
  /** The last report, which the next session repeats. */
  readonly lastReport: ConfigApplyReport | undefined;
  /** Accepts no more snapshots and waits for the running apply. */
  close(): Promise<void>;
}

/**
 * Applies snapshots one after the other. While one is being applied, at most one waits, and a newer one replaces it.
 * Outlives sessions, so that a lost connection does not interrupt an apply.
 * @param onReport called after each apply
 * @param onError called if the gateway threw, which leaves its configuration unknown
 */
function createApplier(
  gateway: Gateway,
  onReport: (report: ConfigApplyReport) => void,
  onError: (error: unknown) => void,
): Applier {
  let waiting: RuntimeConfigSnapshot | undefined;
  let lastReport: ConfigApplyReport | undefined;
  let running: Promise<void> | undefined;
  let closed = false;

  const run = async (): Promise<void> => {
    while (waiting !== undefined && !closed) {
      const snapshot = waiting;
      waiting = undefined;
      try {
        const report = await gateway.apply(snapshot);
        if (report !== undefined) {
          lastReport = report;
          onReport(report);
        }
      } catch (error) {
        onError(error);
      }
    }
    running = undefined;
  };

  return {
    get lastReport() {
      return lastReport;
    },
    offer(snapshot) {
      if (closed) return;
      waiting = snapshot;
      running ??= run();
    },
    async close() {
      closed = true;
      waiting = undefined;
      await running;
    },
  };
}
