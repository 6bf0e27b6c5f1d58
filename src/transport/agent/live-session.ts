/**
 * One attached session at work: feeds received data to the pure machine (`session.ts`) and carries out its outputs,
 * with delivery, telemetry and the stream. `reading.ts` decides when it reads. Implements
 * `docs/contract/agent-protocol.md#control` and `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import type { AgentCommandName, ConfigAnswer, SnapshotPush } from '../../delivery/port.js';
import {
  ServicePayload,
  type AgentHello,
  type JoinRequest,
  type SessionCloseReason,
} from '../../gen/svc/control/v1/session.js';
import type { Clock } from '../../kernel/clock.js';
import { errorText, unreachable } from '../../kernel/errors.js';
import { joinTokenIn } from '../../kernel/ids.js';
import type { CipherState } from '../../channel/noise/cipher-state.js';
import type { PresenceFacts, ReportingProcess } from '../../reports/port.js';
import type { PendingSession } from './admission/pending-table.js';
import type { AgentStream } from './agent-stream.js';
import { jittered, type CloseReason } from './close-reasons.js';
import { ConfigExchange } from './config-exchange.js';
import { countIn } from './counters.js';
import type { Frame } from './frames.js';
import { Heartbeats, type AgentIntervals } from './heartbeats.js';
import type { LiveSession, LiveSessionDeps } from './live-session-port.js';
import { Reading } from './reading.js';
import { Outbox, SessionClosing } from './outbox.js';
import type { ReadBudget } from './read-budget.js';
import { dueAt, startState, step, type SessionInput, type SessionOutput, type SessionState } from './session.js';
import { SessionFrames } from './session-frames.js';
import { diagnosticsFacts, metricsFacts } from '../../reports/from-wire.js';
import { heartbeatFacts } from '../../reports/reported.js';

/** Base of the jittered `retry_after_ms` of DRAINING. */
const drainRetryMs = 2_000;

/**
 * A class, because each agent has one: see `src/channel/noise/cipher-state.ts`. Its parts call it back directly,
 * because callbacks would cost each session two dozen functions.
 */
class AttachedSession implements LiveSession {
  readonly #deps: LiveSessionDeps;
  readonly #heartbeats: Heartbeats;
  readonly #config: ConfigExchange;
  readonly #outbox: Outbox;
  readonly #frames: SessionFrames;
  readonly #closing: SessionClosing;
  readonly #reading: Reading;
  #state: SessionState;
  #proven = false;
  /** No time limit ends before this, monotonic milliseconds. */
  #dueAt = 0;
  /** Lower-case hex; empty for an agent that does not name its process. */
  #processId = '';
  #over = false;
  /** Pending while its PSK becomes the node's, when nothing more is read; undefined at all other times. */
  #proof: Promise<void> | undefined;
  readonly nodeId: string;
  readonly id: string;
  readonly psk: PendingSession['psk'];
  readonly address: string;
  readonly openedAt: number;
  readonly closed: Promise<void>;
  /** Used by its parts. */
  readonly stream: AgentStream;
  readonly cipher: CipherState;
  readonly readBudget: ReadBudget;

  constructor(deps: LiveSessionDeps, pending: PendingSession, stream: AgentStream, streamAt: number) {
    const { nodeId, openedAt, intervals } = pending;
    this.#deps = deps;
    this.nodeId = nodeId;
    this.id = pending.id;
    this.psk = pending.psk;
    this.address = stream.connection.remoteAddress;
    this.openedAt = openedAt;
    this.stream = stream;
    this.cipher = pending.noise.send;
    this.#state = startState({ nodeId, openedAt, streamAt, rekeyAfterSecs: deps.rekeySeconds, intervals });
    this.readBudget = deps.readBudget(nodeId);
    this.#frames = new SessionFrames(deps, pending, this.readBudget, streamAt);
    this.#reading = new Reading(this, streamAt);
    this.#outbox = new Outbox(this);
    this.#config = new ConfigExchange(this);
    this.#heartbeats = new Heartbeats(this, intervals);
    this.#closing = new SessionClosing(stream, this.#outbox);
    this.closed = this.#closing.closed;
  }

  get #process(): ReportingProcess {
    return { process_id: this.#processId, runs_generation: this.#config.runs };
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
    if (!this.#over) this.#receive(this.#frames.takeFrame(frame));
  }
  message(bytes: Uint8Array): void {
    if (this.#proof === undefined) this.#reading.take(bytes);
    else void this.#proof.then(() => this.#reading.take(bytes));
  }
  halfClosed(): void {
    this.#reading.release();
    this.#run({ kind: 'half_closed' });
  }
  gone(): void {
    this.#reading.release();
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
    this.#run({ kind: 'draining', retryAfterMs: jittered(drainRetryMs, this.#deps.random) });
  }
  tick(): void {
    if (this.#frames.isFlood(this.now()) && !this.#over) this.#endFlood();
    if (this.throttled) this.#reading.balance();
    // The agent's silence is checked once everything it has sent is read.
    if (this.#reading.holds || this.now() < this.#dueAt) return;
    this.#run({ kind: 'tick' });
    this.#dueAt = dueAt(this.#state);
  }
  slowFor(now: number): number {
    const since = this.#outbox.writingSince;
    return since === undefined ? 0 : now - since;
  }
  get throttled(): boolean {
    return this.#reading.throttled;
  }
  get over(): boolean {
    return this.#over;
  }

  // Services used by its parts.

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
    this.#reading.balance();
  }
  get live(): boolean {
    return this.#state.phase === 'live';
  }
  get waitingRequests(): number {
    // A few are enough to stop reading.
    return this.#proof === undefined ? Math.max(this.#config.waiting, this.#heartbeats.waiting) : Infinity;
  }
  get waitingAnswers(): number {
    return this.#outbox.waiting;
  }
  reportTurn(): Promise<void> | undefined {
    return this.#config.reportTurn();
  }
  read(bytes: Uint8Array): void {
    this.#receive(this.#frames.take(bytes));
  }
  onExcused(excused: boolean): void {
    this.#run({ kind: 'paused', paused: excused });
  }
  onThrottled(): void {
    this.#deps.counters.readPauses += 1;
    this.#deps.onThrottled(this);
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
    if (input.kind === 'fragment' || input.kind === 'intervals') this.#dueAt = 0;
    for (const output of stepped.outputs) this.#perform(output);
  }
  #drainAfter(error: unknown, message: string): void {
    if (this.#over) return;
    this.#deps.logger.warn({ node_id: this.nodeId, session_id: this.id, error: errorText(error) }, message);
    this.drain();
  }

  #perform(output: SessionOutput): void {
    const { nodeId } = this;
    const { telemetry, counters } = this.#deps;
    switch (output.kind) {
      case 'hello':
        this.#processId = Buffer.from(output.hello.processId).toString('hex');
        this.#config.open(nodeId, this.id, this.#outbox, this.#confirmOf(output.hello));
        this.#hello(output.hello);
        return;
      case 'join':
        return this.#join(output.request);
      case 'send_grant': {
        const { nodeId: joined, nodeName, controlPsk } = output.grant;
        const value = { nodeId: joined, nodeName, controlPsk };
        this.send(ServicePayload.encode({ payload: { $case: 'joinGrant', value } }).finish());
        return;
      }
      case 'charge':
        this.readBudget.payload(output.entries);
        return;
      case 'alive':
        telemetry.alive(nodeId, this.presence(), this.offlineAfterMs);
        return;
      case 'heartbeat': {
        counters.heartbeats += 1;
        const facts = heartbeatFacts(output.heartbeat, output.tables, this.#process);
        telemetry.alive(nodeId, this.presence(), this.offlineAfterMs, facts);
        this.#heartbeats.answer(output.heartbeat);
        this.#config.beat();
        return;
      }
      case 'config_request':
        this.#config.request(output.version, output.checksum);
        return;
      case 'apply_report':
        this.#config.report(output.outcome, this.#reading.cameAt);
        return;
      case 'ignored_report':
        counters.ignoredReports += 1;
        return;
      case 'metrics':
        telemetry.metrics(nodeId, metricsFacts(output.metrics), this.#process);
        return;
      case 'diagnostics':
        void this.#deps.diagnostics.take(nodeId, diagnosticsFacts(output.report));
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

  #hello(hello: AgentHello): void {
    const done = this.#deps.onHello(this, hello).catch((error: unknown) => {
      this.#drainAfter(error, 'agent drained: its session cannot be recorded');
    });
    if (!this.psk.isCandidate) return;
    this.#proof = done.finally(() => {
      this.#proof = undefined;
      this.#reading.balance();
    });
  }

  #confirmOf({ features }: AgentHello): ((generation: number) => void) | undefined {
    if (!features.includes('confirm')) return undefined;
    return (generation) => {
      const value = { generation: BigInt(generation) };
      this.send(ServicePayload.encode({ payload: { $case: 'configConfirmed', value } }).finish());
    };
  }

  #join({ requestId, name }: JoinRequest): void {
    const { nodeId, id: sessionId } = this;
    const tokenId = joinTokenIn(nodeId) ?? '';
    const answered = this.#deps.join({ tokenId, requestId: Buffer.from(requestId).toString('hex'), name, sessionId });
    answered.then(
      (answer) => this.#run({ kind: 'join_answer', answer }),
      (error: unknown) => {
        this.#deps.logger.warn({ join_token_id: tokenId, error: errorText(error) }, 'a machine cannot join now');
        const retryAfterMs = jittered(drainRetryMs, this.#deps.random);
        this.#run({ kind: 'join_answer', answer: { kind: 'later', retryAfterMs } });
      },
    );
  }

  #end(reason: CloseReason, agentReason: SessionCloseReason | undefined): void {
    this.#over = true;
    this.#reading.end();
    countIn(this.#deps.counters.ends, reason.cause);
    this.#frames.discard();
    this.#config.close();
    this.#heartbeats.close();
    this.#deps.onEnded(this, reason, agentReason);
    if (reason.cause === 'lost') return;
    this.#closing.begin(reason, this.#proven);
  }

  #endFlood(): void {
    const [node_id, address] = [this.nodeId, this.address];
    this.#deps.logger.warn(
      { node_id, address },
      'the connection of an agent is closed: it sends too much beside frames',
    );
    this.stream.connection.destroy();
  }

  #receive(input: SessionInput): void {
    if (!this.#proven && this.#frames.proven) {
      this.#proven = true;
      this.#deps.onProven(this, this.stream.connection);
    }
    this.#run(input);
    this.#reading.balance();
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
