/**
 * Answers the heartbeats of one session in order: claims the node's commands, if any, sends them with the current
 * intervals, and remembers those intervals. Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { offlineAfterSeconds, type AgentCommandName, type Delivery } from '../../delivery/port.js';
import { Command } from '../../gen/svc/control/v1/command.js';
import type { HeartbeatRequest } from '../../gen/svc/control/v1/heartbeat.js';
import { ServicePayload } from '../../gen/svc/control/v1/session.js';
import { limits } from '../../kernel/limits.js';
import { SerialQueue } from './serial-queue.js';

export interface AgentIntervals {
  readonly heartbeatSecs: number;
  readonly metricsSecs: number;
  /** Silence after which the node counts as offline and its session as idle. */
  readonly offlineAfterMs: number;
}

/** The intervals of the current settings. */
export function intervalsOf(settings: ReturnType<Delivery['settings']>): AgentIntervals {
  return {
    heartbeatSecs: settings.heartbeat_interval_secs,
    metricsSecs: settings.metrics_interval_secs,
    offlineAfterMs: offlineAfterSeconds(settings) * 1000,
  };
}

function sameIntervals(a: AgentIntervals, b: AgentIntervals): boolean {
  return (
    a.heartbeatSecs === b.heartbeatSecs && a.metricsSecs === b.metricsSecs && a.offlineAfterMs === b.offlineAfterMs
  );
}

interface HeartbeatsDeps {
  readonly delivery: Pick<Delivery, 'settings'>;
  /** False while no command waits for the node, which is nearly always: claiming would cost more than the answer. */
  hasCommands(): boolean;
  claimCommands(): Promise<readonly AgentCommandName[]>;
  /** Sends the bytes of a `ServicePayload`. */
  send(payload: Uint8Array): void;
  /** A HeartbeatResponse with these intervals, which are new to the agent, has been queued. */
  onIntervals(intervals: AgentIntervals): void;
  /** A HeartbeatResponse with RELOAD_CONFIG has been queued. */
  onReload(): void;
  onHeartbeatFailed(error: unknown): void;
  /** A heartbeat has been answered. */
  onProgress(): void;
}

/** A class, because each agent has one: see `src/channel/noise/cipher-state.ts`. */
export class Heartbeats {
  readonly #deps: HeartbeatsDeps;
  /** Undefined until a node has commands, which few ever do. */
  #queue: SerialQueue | undefined;
  #closed = false;
  /** The intervals last sent to the agent. */
  intervals: AgentIntervals;

  /** @param granted the intervals of the session's grant */
  constructor(deps: HeartbeatsDeps, granted: AgentIntervals) {
    this.#deps = deps;
    this.intervals = granted;
  }

  answer(heartbeat: Pick<HeartbeatRequest, 'sequence'>): void {
    if (this.waiting === 0 && !this.#deps.hasCommands()) return this.#respond(heartbeat, []);
    this.#queue ??= new SerialQueue(this);
    this.#queue.run(async () => {
      const commands = await this.#deps.claimCommands();
      if (!this.#closed) this.#respond(heartbeat, commands);
    });
  }
  /** Heartbeats not answered yet. */
  get waiting(): number {
    return this.#queue?.size ?? 0;
  }
  close(): void {
    this.#closed = true;
    this.#queue?.close();
  }
  onFailed(error: unknown): void {
    this.#deps.onHeartbeatFailed(error);
  }
  onProgress(): void {
    this.#deps.onProgress();
  }
  #respond(heartbeat: Pick<HeartbeatRequest, 'sequence'>, commands: readonly AgentCommandName[]): void {
    const inForce = intervalsOf(this.#deps.delivery.settings());
    const values = commands.slice(0, limits.agent.commandsPerHeartbeat).map((name) => Command[name]);
    const value = {
      ok: true,
      ackSequence: heartbeat.sequence,
      commands: values,
      heartbeatIntervalSecs: inForce.heartbeatSecs,
      metricsIntervalSecs: inForce.metricsSecs,
    };
    this.#deps.send(ServicePayload.encode({ payload: { $case: 'heartbeatResponse', value } }).finish());
    if (values.includes(Command.RELOAD_CONFIG)) this.#deps.onReload();
    if (sameIntervals(inForce, this.intervals)) return;
    this.intervals = inForce;
    this.#deps.onIntervals(inForce);
  }
}
