/**
 * Keeps one live session with the service for as long as the agent runs: connects, waits after a loss, and replaces the
 * session before its keys are too old. A disconnect changes nothing on the node. Implements the agent's side of
 * `docs/contract/agent-protocol.md#rekey`, and its reactions to a session's end from
 * `docs/contract/agent-protocol.md#control`.
 */
import type { ConfigApplyReport } from '../../gen/svc/control/v1/config.js';
import type { DiagnosticsReport } from '../../gen/svc/control/v1/diagnostics.js';
import { SessionCloseReason } from '../../gen/svc/control/v1/session.js';
import { sleep, withFirstOf } from '../../kernel/background.js';
import { errorText } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import type { Logger } from '../../kernel/logger.js';
import { backoff } from '../../kernel/retry.js';
import type { AgentConfig } from '../config.js';
import type { ClockOffset } from '../diagnosis/diagnose.js';
import type { UnconfirmedFile } from '../unconfirmed-file.js';
import { createApplier } from './applier.js';
import { createControlClient, type ControlClient } from './client.js';
import { createPskChoice, type OpenedUnder, type PskChoice, type ReadPsks } from './psk-choice.js';
import { createReconnectPace, rekeyDelay, type ConnectionEnd } from './reconnect.js';
import { startSession, type Session, type SessionDependencies } from './session.js';
import { createSoon } from './soon.js';

/** Extra heartbeats. The service reads two payloads a second, 20 at once, regular ones included. */
const extraHeartbeats = { perSecond: 1, burst: 10 } as const;
// docs/contract/agent-protocol.md#the-reference-agent
const extraMetrics = { perSecond: 1 / 5, burst: 1 } as const;

export interface SessionEvents {
  onDisconnected?(end: ConnectionEnd, retryInMs: number): void;
  /** A rekey has replaced the session. */
  onRekeyed?(): void;
}

interface SessionLoopOptions extends Pick<
  SessionDependencies,
  'gateway' | 'hello' | 'usage' | 'logger' | 'clock' | 'random'
> {
  readonly config: Pick<AgentConfig, 'nodeId' | 'endpoint' | 'keys' | 'rekeyIntervalSeconds'>;
  readonly agentVersion: string;
  readonly readPsks: ReadPsks;
  /** Undefined: an unconfirmed configuration does not survive a restart. */
  readonly unconfirmed: UnconfirmedFile | undefined;
  /** Answers RUN_DIAGNOSTICS; an abort of the signal ends it early. */
  readonly diagnose: (offset: ClockOffset | undefined, signal: AbortSignal) => Promise<DiagnosticsReport>;
  readonly events: SessionEvents;
}

export interface SessionLoop {
  /** True from the service's first answer until the session is lost; a rekey does not interrupt it. */
  readonly connected: boolean;
  /** What the last apply led to; each session begins with it. */
  readonly lastReport: ConfigApplyReport | undefined;
  /** Opens another session at once if the identity file has another PSK. */
  reload(): Promise<void>;
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
  let lastReport: ConfigApplyReport | undefined;
  const psks = createPskChoice(config.keys, options.readPsks, logger);
  /** The identity file has another PSK than when the last session was opened. */
  let reloaded = false;
  const pace = createReconnectPace(random);
  let sequence = 0n;
  /** Aborted when the current session is to be replaced by one over a connection of its own. */
  let renewal = new AbortController();
  /** A configuration applied since the newest connection began requires a newer connection. */
  let needsConnection = false;
  /** Aborted to end a wait between two tries early. */
  let wake = new AbortController();
  const pause = (ms: number, over: AbortSignal): Promise<void> =>
    withFirstOf([over, wake.signal], (first) => sleep(ms, first));
  const wakeUp = (): void => {
    wake.abort();
    wake = new AbortController();
  };
  const open = (client: ControlClient, over: AbortSignal): ReturnType<typeof psks.open> => {
    reloaded = false;
    return psks.open(client, over);
  };
  const connect = (): ControlClient => {
    needsConnection = false;
    return createControlClient({ ...config, agentVersion: options.agentVersion, clock, offset });
  };
  // The next session starts with its own heartbeat.
  const heartbeat = createSoon(extraHeartbeats, clock, () => {
    current?.beat();
    return true;
  });
  const metrics = createSoon(extraMetrics, clock, () => current?.measure() === true);
  gateway.watch({ onUpstreams: metrics.ask, onRoutes: heartbeat.ask });

  const applier = createApplier({
    gateway,
    file: options.unconfirmed,
    clock,
    logger,
    onReport(report, { goesBackLater, wentBack }) {
      lastReport = report;
      current?.report(report);
      if (goesBackLater) {
        // Only a session over a new connection shows that this configuration lets the agent reach the service.
        current?.hush();
        needsConnection = true;
        renewal.abort();
      } else heartbeat.ask();
      if (wentBack) wakeUp();
    },
  });

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
    lastReport: () => lastReport,
    onSnapshot: applier.offer,
    onConfirmed: applier.confirmed,
    // One at a time: a report answers every command that came before it.
    onDiagnose: () => void (diagnosing ??= diagnose()),
    onAnswer: () => {
      pace.answered();
      if (connected) return;
      connected = true;
      logger.info({}, 'connected to the service');
    },
  };

  /** Runs one connection, from its first session to the end of its last. */
  const runConnection = async (): Promise<ConnectionEnd> => {
    let client = connect();
    try {
      return await runSessions(client, (next) => {
        client.close();
        client = next;
      });
    } finally {
      client.close();
    }
  };

  /** @param moved called when another connection replaces the first one */
  const runSessions = async (client: ControlClient, moved: (to: ControlClient) => void): Promise<ConnectionEnd> => {
    const first = await open(client, stop.signal);
    if (!first.ok) return { kind: 'refused', ...first.error };
    pace.opened();
    let opened = first.value;
    for (;;) {
      const { session: answered, keys } = opened;
      renewal = new AbortController();
      if (reloaded || needsConnection) renewal.abort();
      const rekeyMs = rekeyDelay(config.rekeyIntervalSeconds, answered.grant.rekeyAfterSecs, random);
      const onAnswer = (): void => {
        psks.answered(keys);
        dependencies.onAnswer();
      };
      const session = startSession(answered, { ...dependencies, onAnswer });
      // Like the session on which it was applied.
      if (needsConnection) session.hush();
      current = session;
      measured = answered.clockOffset;
      metrics.retry();
      tellDiagnosis();
      const dial = (): ControlClient => (renewal.signal.aborted ? connect() : client);
      const waits = { rekeyMs, renewed: renewal.signal, stopped: stop.signal, pause, open };
      const next = await untilReplaced({ ...options, own: client }, dial, session, waits);
      if (next.kind === 'ended') return psks.isGood(keys) ? next.end : triedInVain(next.end);
      // Make before break: the new session is open before the old one is closed. An old session closed with REKEY is
      // never superseded, and late messages on it are ignored.
      await session.close(next.kind === 'stop' ? SessionCloseReason.NORMAL : SessionCloseReason.REKEY);
      if (next.kind === 'stop') return { kind: 'lost', detail: 'stopped' };
      opened = next.opened;
      if (next.client !== client) moved((client = next.client));
      logger.info({}, 'session rekeyed');
      events.onRekeyed?.();
    }
  };

  const run = async (): Promise<void> => {
    await applier.ready;
    while (!stop.signal.aborted) {
      let end: ConnectionEnd;
      try {
        end = await runConnection();
      } catch (error) {
        end = { kind: 'lost', detail: errorText(error) };
      } finally {
        current = undefined;
      }
      if (stop.signal.aborted) break;
      connected = false;
      const delay = pace.after(end);
      logEnd(logger, end, delay);
      events.onDisconnected?.(end, delay);
      await pause(delay, stop.signal);
    }
    connected = false;
  };
  const done = run();

  return {
    get connected() {
      return connected;
    },
    get lastReport() {
      return lastReport;
    },
    async reload() {
      reloaded = await psks.hasAnother();
      if (!reloaded) return;
      renewal.abort();
      wakeUp();
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
  | { readonly kind: 'rekey'; readonly opened: OpenedUnder; readonly client: ControlClient };

interface Waits {
  /** Until the rekey starts. */
  readonly rekeyMs: number;
  /** Aborted to start it at once. */
  readonly renewed: AbortSignal;
  readonly stopped: AbortSignal;
  pause(ms: number, over: AbortSignal): Promise<void>;
  open: PskChoice['open'];
}

/**
 * Waits until the session ends, the agent stops, or a rekey has opened a new session, whichever comes first.
 * @param dial the connection of the next try: the session's own, or a new one
 */
async function untilReplaced(
  { logger, random, own }: Pick<SessionLoopOptions, 'logger' | 'random'> & { readonly own: ControlClient },
  dial: () => ControlClient,
  session: Session,
  { rekeyMs, renewed, stopped, pause, open }: Waits,
): Promise<Next> {
  const ended = new AbortController();
  let end: ConnectionEnd | undefined;
  void session.ended.then((value) => {
    end = value;
    ended.abort();
  });
  return withFirstOf([stopped, ended.signal], async (over): Promise<Next> => {
    await sleep(rekeyMs, AbortSignal.any([over, renewed]));
    for (let failures = 0; !over.aborted; failures += 1) {
      const client = dial();
      const replacement = await open(client, over);
      // While it was being opened, a session over a connection of its own may have been requested.
      const isInVain = over.aborted || (renewed.aborted && client === own);
      if (replacement.ok && !isInVain) return { kind: 'rekey', opened: replacement.value, client };
      if (client !== own) client.close();
      if (replacement.ok) {
        replacement.value.session.discard();
        continue;
      }
      logger.warn({ status: replacement.error.status, detail: replacement.error.detail }, 'rekey refused, will retry');
      await pause(backoff(limits.agentControl.reconnect, failures, random), over);
    }
    return end === undefined ? { kind: 'stop' } : { kind: 'ended', end };
  });
}

/** The revocation of a PSK that the service never answered under is no reason to wait: the previous one is good. */
function triedInVain(end: ConnectionEnd): ConnectionEnd {
  const isRevoked = end.kind === 'closed' && end.close.reason === SessionCloseReason.REVOKED;
  return isRevoked ? { kind: 'lost', detail: 'the PSK of the identity file was taken back' } : end;
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
    return logger.error({ retry_in_ms }, 'the control PSK was revoked: give the agent the new one');
  }
  if (reason === SessionCloseReason.SUPERSEDED) {
    return logger.error({ retry_in_ms }, 'session superseded: another agent uses the PSK of this node');
  }
  logger.warn({ reason: name, message, retry_in_ms }, 'the service closed the session');
}
