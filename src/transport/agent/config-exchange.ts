/**
 * One session's exchange with delivery: its ConfigRequests and apply reports in order, and the snapshot last pushed to
 * it. Delivery decides what a node should run. Implements `docs/contract/agent-protocol.md#configuration`.
 */
import type { ApplyReport, ConfigAnswer, Delivery, NodeSession, PushSlot, SnapshotPush } from '../../delivery/port.js';
import { timestamp, type Clock } from '../../kernel/clock.js';
import { SerialQueue } from './serial-queue.js';

/** How long an apply report delays the requests after it; recording it may take longer. */
const reportWaitMs = 2_000;

interface ConfigExchangeDeps {
  readonly delivery: Pick<Delivery, 'openNodeSession'>;
  readonly clock: Clock;
  onAnswer(answer: ConfigAnswer): void;
  onConfigFailed(error: unknown): void;
  /** A request or a report is done. */
  onProgress(): void;
}

/** A class, because each agent has one: see `src/channel/noise/cipher-state.ts`. */
export class ConfigExchange {
  readonly #deps: ConfigExchangeDeps;
  readonly #queue = new SerialQueue(this);
  #nodeSession: NodeSession | undefined;
  /** A snapshot was sent, and no report has arrived since. */
  #unanswered = false;
  #confirms = false;
  /** Something was applied that the next heartbeat may confirm. */
  #awaitsBeat = false;
  /** The last snapshot sent, and when. */
  pushed: { readonly generation: number; readonly at: string } | undefined;
  /**
   * The generation that the agent's process runs, as reported in this session; null before that. In order of arrival,
   * unlike delivery's record: a heartbeat after an apply report reflects that apply.
   */
  runs: number | null = null;

  constructor(deps: ConfigExchangeDeps) {
    this.#deps = deps;
  }

  /** Opens the node session with delivery, which offers snapshots to `slot` from the first ConfigRequest on. */
  open(nodeId: string, sessionId: string, slot: PushSlot, confirm?: (generation: number) => void): void {
    this.#nodeSession = this.#deps.delivery.openNodeSession(nodeId, sessionId, slot, confirm);
    this.#confirms = confirm !== undefined;
  }
  request(version: bigint, checksum: Uint8Array): void {
    // A later 0 only asks for the full snapshot again.
    if (version > 0n || this.runs === null) this.runs = Number(version);
    this.#queue.run(async () => {
      const answer = await this.#nodeSession?.request(version, checksum);
      if (answer !== undefined) this.#deps.onAnswer(answer);
    });
  }
  /**
   * Resolves when the received frame may be processed, in case it reports on a snapshot that is still being sent to
   * others; undefined when that is now.
   */
  reportTurn(): Promise<void> | undefined {
    return this.#unanswered ? this.#nodeSession?.reportTurn() : undefined;
  }
  /** @param at arrival time, monotonic milliseconds */
  report(outcome: ApplyReport, at: number): void {
    this.#unanswered = false;
    if (outcome.status === 'applied') {
      this.runs = Number(outcome.generation);
      this.#awaitsBeat = this.#confirms;
    }
    // The report becomes a fact, which waits while the event store is away; the requests after it must not wait.
    this.#queue.run(() => this.#nodeSession?.report(outcome, at) ?? Promise.resolve(), reportWaitMs);
  }
  /** A heartbeat has arrived. It is queued after the reports that came before it. */
  beat(): void {
    if (!this.#awaitsBeat) return;
    this.#awaitsBeat = false;
    this.#queue.run(async () => {
      if (this.#nodeSession?.beat() === false) this.#awaitsBeat = true;
    });
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
