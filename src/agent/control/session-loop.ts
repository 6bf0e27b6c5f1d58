/**
 * Keeps one live session with the service for as long as the agent runs: connects, waits after a loss, and replaces the
 * session before its keys are too old. A disconnect changes nothing on the node. Implements the agent's side of
 * `docs/contract/agent-protocol.md#rekey`, and its reactions to a session's end from
 * `docs/contract/agent-protocol.md#control`.
 */
import type { ConfigApplyReport } from '../../gen/svc/control/v1/config.js';
import { SessionCloseReason } from '../../gen/svc/control/v1/session.js';
import { sleep, withFirstOf } from '../../kernel/background.js';
import { errorText } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import type { AgentConfig } from '../config.js';
import type { UnconfirmedFile } from '../unconfirmed-file.js';
import { createApplier } from './applier.js';
import { createControlClient } from './client.js';
import { runConnection, type ConnectionParts, type Live } from './connection.js';
import { createPskChoice, type OpenedUnder, type ReadPsks } from './psk-choice.js';
import { createReconnectPace, rekeyDelay, type ConnectionEnd } from './reconnect.js';
import { startSession, type SessionDependencies } from './session.js';
import { createTelling, type TellingOptions } from './telling.js';

export interface SessionEvents {
  onDisconnected?(end: ConnectionEnd, retryInMs: number): void;
  /** A rekey has replaced the session. */
  onRekeyed?(): void;
}

interface SessionLoopOptions
  extends
    Pick<SessionDependencies, 'gateway' | 'hello' | 'usage' | 'logger' | 'clock' | 'random'>,
    Pick<TellingOptions, 'diagnose'> {
  readonly config: Pick<AgentConfig, 'nodeId' | 'endpoint' | 'keys' | 'rekeyIntervalSeconds'>;
  readonly agentVersion: string;
  readonly readPsks: ReadPsks;
  /** Undefined: an unconfirmed configuration does not survive a restart. */
  readonly unconfirmed: UnconfirmedFile | undefined;
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
  let connected = false;
  let lastReport: ConfigApplyReport | undefined;
  let sequence = 0n;
  const psks = createPskChoice(config.keys, options.readPsks, logger);
  const pace = createReconnectPace(random);
  const told = createTelling(options, stop.signal);
  /** Aborted when the live session is to be replaced by one over a connection of its own. */
  let renewal = new AbortController();
  /** The identity file has another PSK than when the last session was opened. */
  let reloaded = false;
  /** A configuration applied since the newest connection began requires a newer connection. */
  let needsConnection = false;
  /** Aborted to end a wait between two tries early. */
  let wake = new AbortController();
  const pause = (ms: number, signals: readonly AbortSignal[]): Promise<void> =>
    withFirstOf([...signals, wake.signal], (first) => sleep(ms, first));
  const wakeUp = (): void => {
    wake.abort();
    wake = new AbortController();
  };

  const applier = createApplier({
    gateway,
    file: options.unconfirmed,
    clock,
    logger,
    onReport(report, { goesBackLater, wentBack }) {
      lastReport = report;
      told.applied(report);
      if (goesBackLater) {
        // Only a session over a new connection shows that this configuration lets the agent reach the service.
        told.hush();
        needsConnection = true;
        renewal.abort();
      } else told.beat();
      if (wentBack) wakeUp();
    },
  });

  const onAnswer = (): void => {
    pace.answered();
    if (connected) return;
    connected = true;
    logger.info({}, 'connected to the service');
  };
  const attach = ({ session: opened, keys }: OpenedUnder): Live => {
    renewal = new AbortController();
    if (reloaded || needsConnection) renewal.abort();
    const session = startSession(opened, {
      ...options,
      nodeId: config.nodeId,
      nextSequence: () => (sequence += 1n),
      lastReport: () => lastReport,
      onSnapshot: applier.offer,
      onConfirmed: applier.confirmed,
      onDiagnose: told.diagnose,
      onAnswer() {
        psks.answered(keys);
        onAnswer();
      },
    });
    // Like the session on which it was applied.
    if (needsConnection) session.hush();
    told.moveTo(session, opened.clockOffset);
    const rekeyMs = rekeyDelay(config.rekeyIntervalSeconds, opened.grant.rekeyAfterSecs, random);
    const ended = session.ended.then((end) => (psks.isGood(keys) ? end : triedInVain(end)));
    return { session, ended, rekeyMs, renewed: renewal.signal };
  };
  const parts: ConnectionParts = {
    connect() {
      needsConnection = false;
      return createControlClient({ ...config, agentVersion: options.agentVersion, clock, offset });
    },
    async open(client, over) {
      reloaded = false;
      const opened = await psks.open(client, over);
      if (opened.ok) pace.opened();
      return opened;
    },
    attach,
    pause,
    onRekeyed() {
      logger.info({}, 'session rekeyed');
      events.onRekeyed?.();
    },
    stopped: stop.signal,
    logger,
    random,
  };

  const run = async (): Promise<void> => {
    await applier.ready;
    while (!stop.signal.aborted) {
      const end = await runConnection(parts).catch((error: unknown): ConnectionEnd => ({
        kind: 'lost',
        detail: errorText(error),
      }));
      told.moveTo(undefined);
      if (stop.signal.aborted) break;
      connected = false;
      const delay = pace.after(end);
      logEnd(logger, end, delay);
      events.onDisconnected?.(end, delay);
      await pause(delay, [stop.signal]);
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
      await Promise.all([told.close(), applier.close()]);
    },
  };
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
