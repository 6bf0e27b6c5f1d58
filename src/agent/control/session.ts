/**
 * One attached session from its hello to its end: the first payloads, heartbeats, metrics, and the reactions to
 * messages from the service. `session-loop.ts` decides when to open, replace or retry a session. Implements the agent's
 * side of `docs/contract/agent-protocol.md#configuration` and
 * `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { Command } from '../../gen/svc/control/v1/command.js';
import type { ConfigApplyReport, ConfigUpdate, RuntimeConfigSnapshot } from '../../gen/svc/control/v1/config.js';
import type { DiagnosticsReport } from '../../gen/svc/control/v1/diagnostics.js';
import type { HeartbeatResponse } from '../../gen/svc/control/v1/heartbeat.js';
import { SessionCloseReason, type AgentHello } from '../../gen/svc/control/v1/session.js';
import type { Clock } from '../../kernel/clock.js';
import { limits } from '../../kernel/limits.js';
import type { Logger } from '../../kernel/logger.js';
import type { Gateway } from '../gateway.js';
import type { HostUsage } from '../host.js';
import type { OpenedSession } from './client.js';
import type { ControlStream, ServiceMessage, StreamEnd, AgentMessage } from './stream.js';

/** The first heartbeat of a session is sent at a random time within this. */
export const firstHeartbeatWithinMs = 2_000;

export interface SessionDependencies {
  readonly nodeId: string;
  readonly gateway: Gateway;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: () => number;
  readonly usage: () => HostUsage;
  /** Called for each session, because addresses may have changed. */
  readonly hello: () => AgentHello;
  /** The next number of a sequence that continues for the lifetime of the process. */
  readonly nextSequence: () => bigint;
  readonly lastReport: () => ConfigApplyReport | undefined;
  readonly onSnapshot: (snapshot: RuntimeConfigSnapshot) => void;
  readonly onConfirmed: (generation: bigint) => void;
  readonly onDiagnose: () => void;
  /** Called when the service has sent something: the session is live on both sides. */
  readonly onAnswer: () => void;
}

export interface Session {
  readonly ended: Promise<StreamEnd>;
  report(report: ConfigApplyReport): void;
  /** Answers RUN_DIAGNOSTICS. @returns false if the session is over */
  diagnosed(report: DiagnosticsReport): boolean;
  /** Sends no more heartbeats: they would suggest that the agent is reachable, which only another session can show. */
  hush(): void;
  /** Sends a heartbeat in addition to the regular ones. */
  beat(): void;
  /** Sends a MetricsReport in addition to the regular ones. @returns false if the session is over */
  measure(): boolean;
  /**
   * Sends SessionClose and waits up to `limits.agentControl.closeWaitMs` for the service to end the stream. Before
   * NORMAL, it sends the counters once more, because the process ends with the session.
   */
  close(reason: SessionCloseReason): Promise<void>;
}

/** @param applied undefined to get the whole snapshot */
const configRequest = (nodeId: string, applied: Gateway['applied']): AgentMessage => ({
  $case: 'configRequest',
  value: {
    nodeId,
    configVersion: applied?.generation ?? 0n,
    checksum: applied?.checksum ?? Buffer.alloc(0),
  },
});

function heartbeatOf({ nodeId, nextSequence, clock, usage, gateway }: SessionDependencies): AgentMessage {
  const { cpu, memory } = usage();
  return {
    $case: 'heartbeat',
    value: {
      nodeId,
      sequence: nextSequence(),
      timestamp: timestampOf(clock.now()),
      cpuUsage: cpu,
      memoryUsage: memory,
      uptimeSeconds: BigInt(Math.floor(process.uptime())),
      linkMetrics: gateway.linkMetrics(),
      runtimeListeners: gateway.runtimeListeners(),
    },
  };
}

/** Attaches the session and sends a hello, the last apply report again, and a ConfigRequest. */
export function startSession(opened: OpenedSession, dependencies: SessionDependencies): Session {
  const { gateway, clock, logger } = dependencies;
  const started = clock.monotonic();
  const intervals = {
    heartbeat: seconds(opened.grant.heartbeatIntervalSecs, 10),
    metrics: seconds(opened.grant.metricsIntervalSecs, 60),
  };
  let unanswered = 0;
  let lastAck = -1n;
  let over = false;
  let hushed = false;

  const stream: ControlStream = opened.attach((message) => onMessage(message));

  const requestConfig = (fresh: boolean): void => {
    stream.send(configRequest(dependencies.nodeId, fresh ? undefined : gateway.applied));
  };

  const beat = (): void => {
    if (hushed) return;
    stream.send(heartbeatOf(dependencies));
  };
  const measure = (): void => {
    stream.send({
      $case: 'metrics',
      value: { sequence: dependencies.nextSequence(), timestamp: timestampOf(clock.now()), ...gateway.report() },
    });
  };
  const heartbeats = createTicker(clock, intervals.heartbeat, () => {
    if (hushed) return;
    // Only regular heartbeats count: several others in a row may be waiting for their answers.
    if (unanswered >= limits.agentControl.missedHeartbeats) {
      stream.cut(`${unanswered} heartbeats in a row were not answered`);
      return;
    }
    unanswered += 1;
    beat();
  });
  const metrics = createTicker(clock, intervals.metrics, measure);

  const onMessage = (message: ServiceMessage): void => {
    dependencies.onAnswer();
    switch (message.$case) {
      case 'heartbeatResponse':
        return onHeartbeatResponse(message.value);
      case 'configUpdate':
        return takeUpdate(message.value, dependencies);
      case 'configConfirmed':
        return dependencies.onConfirmed(message.value.generation);
      case 'joinGrant':
        // Only for a machine that joins.
        return undefined;
      default:
        message satisfies never;
    }
  };

  const onHeartbeatResponse = (response: HeartbeatResponse): void => {
    if (response.ackSequence > lastAck) {
      lastAck = response.ackSequence;
      unanswered = 0;
    }
    heartbeats.every(seconds(response.heartbeatIntervalSecs, 10));
    metrics.every(seconds(response.metricsIntervalSecs, 60));
    for (const command of response.commands) obey(command, dependencies, () => requestConfig(true));
  };

  const stopTimers = (): void => {
    over = true;
    heartbeats.stop();
    metrics.stop();
  };
  const ended = stream.ended.then((end) => {
    stopTimers();
    logger.debug({ lived_ms: Math.round(clock.monotonic() - started) }, 'session over');
    return end;
  });

  stream.send({ $case: 'hello', value: dependencies.hello() });
  // Sent before the request, so that the service does not repeat a snapshot that this agent has rejected.
  const last = dependencies.lastReport();
  if (last !== undefined) stream.send({ $case: 'applyReport', value: last });
  requestConfig(false);
  // A random delay, so that agents that reconnect together do not send their heartbeats together.
  heartbeats.start(dependencies.random() * Math.min(intervals.heartbeat, firstHeartbeatWithinMs));
  metrics.start(intervals.metrics);

  return {
    ended,
    report(report) {
      if (!over) stream.send({ $case: 'applyReport', value: report });
    },
    diagnosed(report) {
      if (!over) stream.send({ $case: 'diagnostics', value: report });
      return !over;
    },
    hush() {
      hushed = true;
    },
    beat() {
      if (!over) beat();
    },
    measure() {
      if (!over) measure();
      return !over;
    },
    async close(reason) {
      if (!over && reason === SessionCloseReason.NORMAL) {
        beat();
        measure();
      }
      stopTimers();
      await stream.close({ reason, message: '', retryAfterMs: 0 }, limits.agentControl.closeWaitMs);
    },
  };
}

/** @param reload requests the full configuration */
function obey(command: Command, { logger, onDiagnose }: SessionDependencies, reload: () => void): void {
  switch (command) {
    case Command.RELOAD_CONFIG:
      logger.info({}, 'command RELOAD_CONFIG: requesting the full configuration');
      return reload();
    case Command.RUN_DIAGNOSTICS:
      logger.info({}, 'command RUN_DIAGNOSTICS');
      return onDiagnose();
    case Command.RESTART_PINGORA:
      // The relays run in this process: there is no separate engine to restart.
      return logger.warn({}, 'command RESTART_PINGORA ignored: this agent has no separate gateway engine');
    case Command.UNSPECIFIED:
      return;
    default:
      // A later release of the service may send commands that this agent does not know.
      logger.warn({ command: Number(command) }, 'unknown command ignored');
      command satisfies never;
  }
}

function takeUpdate({ update }: ConfigUpdate, { nodeId, logger, onSnapshot }: SessionDependencies): void {
  switch (update?.$case) {
    case 'snapshot':
      if (update.value.nodeId !== '' && update.value.nodeId !== nodeId) {
        return logger.warn({ for: update.value.nodeId }, 'snapshot of another node ignored');
      }
      return onSnapshot(update.value);
    case 'unchanged':
      return logger.debug({ generation: String(update.value.generation) }, 'configuration unchanged');
    case 'gatewayConfig':
    case 'nodeConfig':
    case 'l3Config':
      return logger.warn({ update: update.$case }, 'legacy split update ignored');
    case undefined:
      return;
    default:
      update satisfies never;
  }
}

interface Ticker {
  start(firstAfterMs: number): void;
  /** Sets a new interval, counted from the last tick. */
  every(ms: number): void;
  stop(): void;
}

function createTicker(clock: Clock, everyMs: number, tick: () => void): Ticker {
  let interval = everyMs;
  let timer: NodeJS.Timeout | undefined;
  let lastTick = clock.monotonic();
  let stopped = false;

  const arm = (ms: number): void => {
    clearTimeout(timer);
    if (stopped) return;
    timer = setTimeout(() => {
      lastTick = clock.monotonic();
      arm(interval);
      tick();
    }, ms);
  };

  return {
    start: arm,
    every(ms) {
      if (ms === interval) return;
      interval = ms;
      arm(Math.max(0, lastTick + ms - clock.monotonic()));
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

/** Converts an interval on the wire to milliseconds. 0 means "not given"; the service allows no more than a day. */
function seconds(value: number, whenZero: number): number {
  return Math.min(value === 0 ? whenZero : value, 86_400) * 1000;
}

function timestampOf(milliseconds: number): { readonly seconds: bigint; readonly nanos: number } {
  const whole = Math.floor(milliseconds / 1000);
  return { seconds: BigInt(whole), nanos: Math.floor((milliseconds - whole * 1000) * 1e6) };
}
