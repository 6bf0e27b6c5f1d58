/**
 * When the frames of one session are read. Reading stops while this side is busy, while the agent is over its budget,
 * and while it does not read its answers. Nothing piles up here then, because HTTP/2 flow control holds the agent back.
 * Sending to the agent continues meanwhile. Frames that arrive during a fan-out wait for its end. Implements
 * `docs/contract/agent-protocol.md#control`, "what one session can cost".
 */
import type { AgentStream } from './agent-stream.js';
import type { ReadBudget } from './read-budget.js';

/** How many answers may wait for a peer to read; at this number the service stops reading from that peer. @internal */
export const outboxPayloads = 64;
/** How many requests of one session may wait for delivery or a command claim; at this number reading stops. */
const waitingRequests = 4;
/**
 * How many frames of a session may wait for the end of a fan-out, and the size of one in bytes: enough for a report on
 * a snapshot and a heartbeat. @internal exported for tests
 */
export const heldFrames = 8;
/** @internal exported for tests */
export const heldFrameBytes = 4 * 1024;

interface ReadingOwner {
  readonly stream: AgentStream;
  readonly readBudget: ReadBudget;
  /** Its hello has arrived; an exhausted budget counts only from then on. */
  readonly live: boolean;
  /** Unfinished requests and reports. */
  readonly waitingRequests: number;
  /** Answers that the agent has not taken. */
  readonly waitingAnswers: number;
  now(): number;
  /** See `NodeSession` of delivery. */
  reportTurn(): Promise<void> | undefined;
  /** Reads one frame. */
  read(bytes: Uint8Array): void;
  /** From now on the agent's silence is excused, or counts again. */
  onExcused(excused: boolean): void;
  onThrottled(): void;
}

/** A class, because each agent has one: see `src/channel/noise/cipher-state.ts`. */
export class Reading {
  readonly #owner: ReadingOwner;
  #paused = false;
  /** The agent cannot be heard through no fault of its own, or is paying for earlier bytes. */
  #excused = false;
  #over = false;
  /** Undefined while nothing waits. */
  #held: Uint8Array[] | undefined;
  /** When the frame being read arrived, monotonic milliseconds. */
  cameAt: number;
  /** Reads are paused because the agent has exceeded its budget. */
  throttled = false;

  /** @param startedAt monotonic milliseconds */
  constructor(owner: ReadingOwner, startedAt: number) {
    this.#owner = owner;
    this.cameAt = startedAt;
  }

  /** Takes one frame, and reads it now or later. */
  take(bytes: Uint8Array): void {
    if (this.#over || this.#hold(bytes)) return;
    this.cameAt = this.#owner.now();
    this.#owner.read(bytes);
  }
  /** Reads the waiting frames. */
  release(): void {
    const frames = this.#held;
    this.#held = undefined;
    for (const bytes of frames ?? []) if (!this.#over) this.#owner.read(bytes);
  }
  /** Frames wait to be read. */
  get holds(): boolean {
    return this.#held !== undefined;
  }
  /** Stops or resumes reading, depending on what is waiting now. */
  balance(): void {
    if (this.#over) return;
    const owner = this.#owner;
    const spent = owner.live && owner.readBudget.spent;
    if (spent && !this.throttled) owner.onThrottled();
    this.throttled = spent;
    const busy = spent || owner.waitingRequests >= waitingRequests;
    const full = owner.waitingAnswers >= outboxPayloads;
    const resumes = this.#paused && !busy && !full;
    if ((busy || full) !== this.#paused) {
      this.#paused = busy || full;
      owner.stream.pause(this.#paused);
    }
    // While only `full` holds, the silence is the agent's own fault and it may become idle.
    if (busy === this.#excused && !resumes) return;
    this.#excused = busy;
    owner.onExcused(busy);
  }
  /** Nothing is read any more. */
  end(): void {
    this.#over = true;
    this.#held = undefined;
    this.throttled = false;
  }

  /**
   * While a change is fanned out, every agent that has it answers at once. Reading and decrypting an answer takes as
   * long as the push to the next agent, so the answer waits. Only a few frames of an agent are held.
   * @returns whether the frame waits
   */
  #hold(bytes: Uint8Array): boolean {
    if (this.#held !== undefined) {
      this.#held.push(bytes);
      if (this.#held.length > heldFrames || bytes.length > heldFrameBytes) this.release();
      return true;
    }
    if (bytes.length > heldFrameBytes) return false;
    const turn = this.#owner.reportTurn();
    if (turn === undefined) return false;
    this.#held = [bytes];
    this.cameAt = this.#owner.now();
    void turn.then(() => this.release());
    return true;
  }
}
