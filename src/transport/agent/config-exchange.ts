/**
 * One session's exchange with delivery: its ConfigRequests and apply reports in order, and which snapshot was pushed to
 * it last. Delivery decides what a node should run. Implements `docs/contract/agent-protocol.md#configuration`.
 */
import type { ApplyReport, ConfigAnswer, Delivery, NodeSession, PushSlot, SnapshotPush } from '../../delivery/port.js';
import type { Clock } from '../../kernel/clock.js';
import { timestamp } from '../../kernel/clock.js';
import { SerialQueue } from './serial-queue.js';

/** How long an apply report delays the requests behind it; recording it may take longer. */
const reportWaitMs = 2_000;

interface ConfigExchangeDeps {
  readonly delivery: Pick<Delivery, 'openNodeSession'>;
  readonly clock: Clock;
  onAnswer(answer: ConfigAnswer): void;
  onConfigFailed(error: unknown): void;
  /** A request or a report is done. */
  onProgress(): void;
}

/** A class, because there is one for each agent: see `src/channel/noise/cipher-state.ts`. */
export class ConfigExchange {
  readonly #deps: ConfigExchangeDeps;
  readonly #queue = new SerialQueue(this);
  #nodeSession: NodeSession | undefined;
  /** A snapshot was sent, and no report has come since. */
  #unanswered = false;
  /** The snapshot that was sent last, and when. */
  pushed: { readonly generation: number; readonly at: string } | undefined;
  /**
   * The generation that the agent's process runs, as it has told here; null before that. In the order of arrival, unlike
   * what delivery records: a heartbeat behind an apply report tells of what was applied.
   */
  runs: number | null = null;

  constructor(deps: ConfigExchangeDeps) {
    this.#deps = deps;
  }

  /** Opens the node session of delivery, which offers snapshots to `slot` from the first ConfigRequest on. */
  open(nodeId: string, sessionId: string, slot: PushSlot): void {
    this.#nodeSession = this.#deps.delivery.openNodeSession(nodeId, sessionId, slot);
  }
  request(version: bigint, checksum: Uint8Array): void {
    // A later 0 only asks for the whole snapshot again.
    if (version > 0n || this.runs === null) this.runs = Number(version);
    this.#queue.run(async () => {
      const answer = await this.#nodeSession?.request(version, checksum);
      if (answer !== undefined) this.#deps.onAnswer(answer);
    });
  }
  /**
   * Resolves when what has come may be worked on, if it may be the report on a snapshot that others are still being sent;
   * undefined when that is now.
   */
  reportTurn(): Promise<void> | undefined {
    return this.#unanswered ? this.#nodeSession?.reportTurn() : undefined;
  }
  /** @param at when it came, monotonic milliseconds */
  report(outcome: ApplyReport, at: number): void {
    this.#unanswered = false;
    if (outcome.status === 'applied') this.runs = Number(outcome.generation);
    // The report becomes a fact, which waits while the event store is away; the requests behind it must not.
    this.#queue.run(() => this.#nodeSession?.report(outcome, at) ?? Promise.resolve(), reportWaitMs);
  }
  /** The peer's window has taken a whole snapshot. */
  sent(push: SnapshotPush): void {
    this.#unanswered = true;
    this.pushed = { generation: push.generation, at: timestamp(this.#deps.clock.now()) };
    this.#nodeSession?.sent(push);
  }
  /** RELOAD_CONFIG is on its way to the agent. */
  reload(): void {
    this.#nodeSession?.reload().catch((error: unknown) => this.onFailed(error));
  }
  /** Requests and reports not done yet. */
  get waiting(): number {
    return this.#queue.size;
  }
  close(): void {
    this.#queue.close();
    this.#nodeSession?.close();
  }
  onFailed(error: unknown): void {
    this.#deps.onConfigFailed(error);
  }
  onProgress(): void {
    this.#deps.onProgress();
  }
}
