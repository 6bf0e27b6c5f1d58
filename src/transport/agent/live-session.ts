/**
 * One attached session at work: feeds what comes to the pure machine (`session.ts`) and carries out what it answers,
 * with delivery, telemetry and the stream. Decides only when to stop reading. Implements
 * `docs/contract/agent-protocol.md#control` and `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import type { AgentCommandName, ConfigAnswer, Delivery, SnapshotPush } from '../../delivery/port.js';
import { ServicePayload } from '../../gen/svc/control/v1/session.js';
import type { AgentHello, SessionCloseReason } from '../../gen/svc/control/v1/session.js';
import type { Clock } from '../../kernel/clock.js';
import { errorText, unreachable } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import type { CipherState } from '../../channel/noise/cipher-state.js';
import type { PresenceFacts, Telemetry } from '../../telemetry/port.js';
import type { PendingSession } from './admission/pending-table.js';
import type { AgentStream } from './agent-stream.js';
import type { AgentConnection } from '../listener/connection.js';
import { jittered } from './close-reasons.js';
import type { CloseReason } from './close-reasons.js';
import type { AgentIntervals } from './agent-intervals.js';
import { createConfigExchange } from './config-exchange.js';
import type { ConfigExchange } from './config-exchange.js';
import { countIn } from './counters.js';
import type { Counters } from './counters.js';
import type { Frame } from './frame.js';
import { createHeartbeats } from './heartbeats.js';
import type { Heartbeats } from './heartbeats.js';
import { createInbound } from './inbound.js';
import type { Inbound, InboundFrames } from './inbound.js';
import { createOutbox } from './outbox.js';
import type { Outbox } from './outbox.js';
import type { ReadBudget } from './read-budget.js';
import { createSessionClosing } from './session-closing.js';
import type { SessionClosing } from './session-closing.js';
import { startState, step } from './session.js';
import type { SessionInput, SessionOutput, SessionState } from './session.js';
import { heartbeatFacts, metricsFacts } from './telemetry-facts.js';
import type { UnfinishedBytes, UnfinishedShare } from './unfinished-bytes.js';
import { tuning } from './tuning.js';

export interface LiveSessionDeps {
  readonly delivery: Pick<Delivery, 'openNodeSession' | 'settings'>;
  readonly telemetry: Pick<Telemetry, 'alive' | 'metrics'>;
  /** Whether commands are queued for a node, claimed ones and expired ones included. */
  hasCommands(nodeId: string): boolean;
  /** At most 16, oldest first; each is claimed once. */
  claimCommands(nodeId: string): Promise<readonly AgentCommandName[]>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  readonly instanceId: string;
  readonly rekeySeconds: number;
  readonly counters: Counters;
  readonly unfinished: UnfinishedBytes;
  /** What may be read of a node. */
  readBudget(nodeId: string): ReadBudget;
  /** The session's first valid frame has come. */
  onProven(session: LiveSession, connection: AgentConnection): void;
  /** The hello has come: the session becomes its node's live one. Rejects when the stores are out of reach. */
  onHello(session: LiveSession, hello: AgentHello): Promise<void>;
  /** Nothing more comes from the session; its stream may still be closing. */
  onEnded(session: LiveSession, reason: CloseReason, agentReason: SessionCloseReason | undefined): void;
}

export interface LiveSession {
  readonly nodeId: string;
  /** Lower-case hex. */
  readonly id: string;
  /** Of the agent. */
  readonly address: string;
  /** When OpenSession was answered, monotonic milliseconds. */
  readonly openedAt: number;
  presence(): PresenceFacts;
  readonly offlineAfterMs: number;
  frame(frame: Frame): void;
  message(bytes: Uint8Array): void;
  halfClosed(): void;
  /** The stream is over. */
  gone(): void;
  supersede(): void;
  revoke(): void;
  drain(): void;
  /** Checks the time limits. */
  tick(): void;
  /** For how many milliseconds the peer has not taken the fragment on its way. */
  slowFor(now: number): number;
  /** Its reads are paused because it has sent more than it may. */
  readonly throttled: boolean;
  /** Resolves when the stream is over. */
  readonly closed: Promise<void>;
}

/**
 * A class, because there is one for each agent: see `src/channel/noise/cipher-state.ts`. Its parts call it back, instead of functions
 * of which each session would have two dozen.
 */
class AttachedSession implements LiveSession {
  readonly #deps: LiveSessionDeps;
  readonly #heartbeats: Heartbeats;
  readonly #config: ConfigExchange;
  readonly #outbox: Outbox;
  readonly #inbound: InboundFrames;
  readonly #closing: SessionClosing;
  readonly #unfinished: UnfinishedShare;
  readonly #budget: ReadBudget;
  #state: SessionState;
  #proven = false;
  #paused = false;
  /** The agent cannot be heard through no fault of its own, or pays for what it has sent. */
  #excused = false;
  #over = false;
  #throttled = false;
  /** Frames that wait unread while others are sent the snapshot which they are probably about; undefined without one. */
  #held: Uint8Array[] | undefined;
  /** When the frame that is being read came, monotonic milliseconds. */
  #cameAt: number;
  readonly nodeId: string;
  readonly id: string;
  readonly address: string;
  readonly openedAt: number;
  readonly closed: Promise<void>;
  /** For its parts. */
  readonly stream: AgentStream;
  readonly cipher: CipherState;

  constructor(deps: LiveSessionDeps, pending: PendingSession, stream: AgentStream, streamAt: number) {
    const { nodeId, openedAt, intervals } = pending;
    this.#deps = deps;
    this.nodeId = nodeId;
    this.id = pending.id;
    this.address = stream.connection.remoteAddress;
    this.openedAt = openedAt;
    this.#cameAt = streamAt;
    this.stream = stream;
    this.cipher = pending.noise.send;
    this.#state = startState({ nodeId, openedAt, streamAt, rekeyAfterSecs: deps.rekeySeconds, intervals });
    this.#unfinished = deps.unfinished.share();
    this.#budget = deps.readBudget(nodeId);
    this.#inbound = createInbound(pending.noise.receive, pending.sessionId);
    this.#outbox = createOutbox(this);
    this.#config = createConfigExchange(this);
    this.#heartbeats = createHeartbeats(this, intervals);
    this.#closing = createSessionClosing(stream, this.#outbox);
    this.closed = this.#closing.closed;
  }

  presence(): PresenceFacts {
    const { pushed } = this.#config;
    return {
      session_id: this.id,
      instance_id: this.#deps.instanceId,
      pushed_generation: pushed?.generation ?? 0,
      pushed_at: pushed?.at ?? null,
    };
  }
  get offlineAfterMs(): number {
    return this.#heartbeats.intervals.offlineAfterMs;
  }
  frame(frame: Frame): void {
    if (!this.#over) this.#receive(this.#inbound.takeFrame(frame), frame.ciphertext.length);
  }
  message(bytes: Uint8Array): void {
    if (this.#over || this.#hold(bytes)) return;
    this.#cameAt = this.now();
    this.#take(bytes);
  }
  halfClosed(): void {
    this.#release();
    this.#run({ kind: 'half_closed' });
  }
  gone(): void {
    this.#release();
    this.#run({ kind: 'lost' });
    this.#closing.gone();
  }
  supersede(): void {
    this.#run({ kind: 'superseded' });
  }
  revoke(): void {
    this.#run({ kind: 'revoked' });
  }
  drain(): void {
    this.#run({ kind: 'draining', retryAfterMs: jittered(tuning.drainRetryMs, this.#deps.random) });
  }
  tick(): void {
    if (this.#throttled) this.#balance();
    // Its silence is judged once what it has sent is read.
    if (this.#held !== undefined) return;
    this.#run({ kind: 'tick' });
  }
  slowFor(now: number): number {
    const since = this.#outbox.writingSince;
    return since === undefined ? 0 : now - since;
  }
  get throttled(): boolean {
    return this.#throttled && !this.#over;
  }

  // What its parts ask for and tell.

  get delivery(): LiveSessionDeps['delivery'] {
    return this.#deps.delivery;
  }
  get clock(): Clock {
    return this.#deps.clock;
  }
  now(): number {
    return this.#deps.clock.monotonic();
  }
  hasCommands(): boolean {
    return this.#deps.hasCommands(this.nodeId);
  }
  claimCommands(): Promise<readonly AgentCommandName[]> {
    return this.#deps.claimCommands(this.nodeId);
  }
  send(payload: Uint8Array): void {
    this.#outbox.send(payload);
  }
  onSent(push: SnapshotPush): void {
    countIn(this.#deps.counters.snapshots, 'sent');
    this.#config.sent(push);
  }
  onSnapshot(fate: 'offered' | 'superseded' | 'discarded'): void {
    countIn(this.#deps.counters.snapshots, fate);
  }
  onFrame(): void {
    this.#deps.counters.framesOut += 1;
  }
  onProgress(): void {
    this.#balance();
  }
  onAnswer(answer: ConfigAnswer): void {
    this.#run({ kind: 'config_answer', answer });
  }
  onConfigFailed(error: unknown): void {
    this.#drainAfter(error, 'agent drained: its configuration cannot be served');
  }
  onIntervals(intervals: AgentIntervals): void {
    this.#run({ kind: 'intervals', intervals });
  }
  onReload(): void {
    this.#config.reload();
  }
  onHeartbeatFailed(error: unknown): void {
    this.#drainAfter(error, 'agent drained: its heartbeat cannot be answered');
  }

  #run(input: SessionInput): void {
    const stepped = step(this.#state, input, this.#deps.clock.monotonic());
    this.#state = stepped.state;
    for (const output of stepped.outputs) this.#perform(output);
  }
  #drainAfter(error: unknown, message: string): void {
    if (this.#over) return;
    this.#deps.logger.warn({ node_id: this.nodeId, session_id: this.id, error: errorText(error) }, message);
    this.drain();
  }

  /**
   * Stops reading while this side is busy, the agent has sent more than it may or does not read its answers, so that
   * nothing piles up here: HTTP/2 flow control holds the agent back. What it is sent goes on meanwhile.
   */
  #balance(): void {
    if (this.#over) return;
    const spent = this.#state.phase === 'live' && this.#budget.spent;
    if (spent && !this.#throttled) this.#deps.counters.readPauses += 1;
    this.#throttled = spent;
    const busy = spent || Math.max(this.#config.waiting, this.#heartbeats.waiting) >= tuning.serialQueueRequests;
    const full = this.#outbox.waiting >= tuning.outboxPayloads;
    const resumes = this.#paused && !busy && !full;
    if ((busy || full) !== this.#paused) {
      this.#paused = busy || full;
      this.stream.pause(this.#paused);
    }
    // While only `full` holds, the agent is to blame for its silence and may become idle.
    if (busy === this.#excused && !resumes) return;
    this.#excused = busy;
    this.#run({ kind: 'paused', paused: busy });
  }

  #perform(output: SessionOutput): void {
    const { nodeId } = this;
    const { telemetry, counters } = this.#deps;
    switch (output.kind) {
      case 'hello':
        this.#config.open(nodeId, this.id, this.#outbox);
        this.#deps.onHello(this, output.hello).catch((error: unknown) => {
          this.#drainAfter(error, 'agent drained: its session cannot be recorded');
        });
        return;
      case 'charge':
        this.#budget.payload(output.entries);
        return;
      case 'alive':
        telemetry.alive(nodeId, this.presence(), this.offlineAfterMs);
        return;
      case 'heartbeat':
        counters.heartbeats += 1;
        telemetry.alive(nodeId, this.presence(), this.offlineAfterMs, heartbeatFacts(output.heartbeat));
        this.#heartbeats.answer(output.heartbeat);
        return;
      case 'config_request':
        this.#config.request(output.version, output.checksum);
        return;
      case 'apply_report':
        this.#config.report(output.outcome, this.#cameAt);
        return;
      case 'ignored_report':
        counters.ignoredReports += 1;
        return;
      case 'metrics':
        counters.reported.note(this.id, output.metrics);
        telemetry.metrics(nodeId, metricsFacts(output.metrics));
        return;
      case 'send_unchanged':
        this.send(unchanged(output.generation));
        return;
      case 'send_snapshot':
        this.#outbox.offer(output.push);
        return;
      case 'end':
        this.#end(output.reason, output.agentReason);
        return;
      default:
        unreachable(output);
    }
  }

  #end(reason: CloseReason, agentReason: SessionCloseReason | undefined): void {
    this.#over = true;
    this.#held = undefined;
    countIn(this.#deps.counters.ends, reason.cause);
    this.#deps.counters.reported.ended(this.id);
    this.#unfinished.hold(0);
    this.#inbound.discard();
    this.#config.close();
    this.#heartbeats.close();
    this.#deps.onEnded(this, reason, agentReason);
    if (reason.cause === 'lost') return;
    this.#closing.begin(reason, this.#proven);
  }

  /**
   * While a change is fanned out, every agent that has it answers at once, and to read and to decrypt an answer takes as long
   * as the push to the next agent: it waits for its turn. What an agent sends beyond a few frames is not held.
   * @returns whether the frame waits
   */
  #hold(bytes: Uint8Array): boolean {
    if (this.#held !== undefined) {
      this.#held.push(bytes);
      if (this.#held.length > tuning.heldFrames || bytes.length > tuning.heldFrameBytes) this.#release();
      return true;
    }
    if (bytes.length > tuning.heldFrameBytes) return false;
    const turn = this.#config.reportTurn();
    if (turn === undefined) return false;
    this.#held = [bytes];
    this.#cameAt = this.now();
    void turn.then(() => this.#release());
    return true;
  }
  #release(): void {
    const frames = this.#held;
    this.#held = undefined;
    for (const bytes of frames ?? []) if (!this.#over) this.#take(bytes);
  }
  #take(bytes: Uint8Array): void {
    this.#receive(this.#inbound.take(bytes), bytes.length);
  }
  #receive(incoming: Inbound, bytes: number): void {
    this.#deps.counters.framesIn += 1;
    this.#budget.frame(bytes);
    if (!this.#proven && this.#inbound.proven) {
      this.#proven = true;
      this.#deps.onProven(this, this.stream.connection);
    }
    this.#unfinished.hold(this.#inbound.heldBytes);
    if (this.#unfinished.exceeded && incoming.kind === 'fragment') {
      const retryAfterMs = jittered(tuning.overloadRetryMs, this.#deps.random);
      return this.#run({ kind: 'overloaded', retryAfterMs });
    }
    this.#run(incoming);
    this.#balance();
  }
}

/** @param streamAt when the Control stream was opened, monotonic milliseconds */
export function startLiveSession(
  deps: LiveSessionDeps,
  pending: PendingSession,
  stream: AgentStream,
  streamAt: number,
): LiveSession {
  return new AttachedSession(deps, pending, stream, streamAt);
}

/** The bytes of a `ServicePayload`. */
function unchanged(generation: number): Uint8Array {
  const update = { $case: 'unchanged', value: { generation: BigInt(generation) } } as const;
  return ServicePayload.encode({ payload: { $case: 'configUpdate', value: { update } } }).finish();
}
