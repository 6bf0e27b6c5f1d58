/**
 * One attached session at work: feeds what comes to the pure machine (`session.ts`) and carries out what it answers,
 * with delivery, telemetry and the stream. Decides only when to stop reading. Implements
 * `docs/contract/agent-protocol.md#control` and `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import type { AgentCommandName, Delivery } from '../../delivery/port.js';
import { ServicePayload } from '../../gen/svc/control/v1/session.js';
import type { AgentHello, SessionCloseReason } from '../../gen/svc/control/v1/session.js';
import type { Clock } from '../../kernel/clock.js';
import { errorText, unreachable } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import type { PresenceFacts, Telemetry } from '../../telemetry/port.js';
import type { PendingSession } from './admission/pending-table.js';
import type { AgentConnection, AgentStream } from './agent-stream.js';
import { jittered } from './close-reasons.js';
import type { CloseReason } from './close-reasons.js';
import { createConfigExchange } from './config-exchange.js';
import { countIn } from './counters.js';
import type { Counters } from './counters.js';
import type { Frame } from './frame.js';
import { createHeartbeats } from './heartbeats.js';
import { createInbound } from './inbound.js';
import type { Inbound } from './inbound.js';
import { createOutbox } from './outbox.js';
import type { ReadBudget } from './read-budget.js';
import { createSessionClosing } from './session-closing.js';
import { startState, step } from './session.js';
import type { SessionInput, SessionOutput, SessionState } from './session.js';
import { heartbeatFacts, metricsFacts } from './telemetry-facts.js';
import type { UnfinishedBytes } from './unfinished-bytes.js';
import { tuning } from './tuning.js';

export interface LiveSessionDeps {
  readonly delivery: Pick<Delivery, 'openNodeSession' | 'settings'>;
  readonly telemetry: Pick<Telemetry, 'alive' | 'heartbeat' | 'metrics' | 'sessionEnded'>;
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
  tick(now: number): void;
  /** For how many milliseconds the peer has not taken the fragment on its way. */
  slowFor(now: number): number;
  /** Its reads are paused because it has sent more than it may. */
  readonly throttled: boolean;
  /** Resolves when the stream is over. */
  readonly closed: Promise<void>;
}

/** @param streamAt when the Control stream was opened, monotonic milliseconds */
export function startLiveSession(
  deps: LiveSessionDeps,
  pending: PendingSession,
  stream: AgentStream,
  streamAt: number,
): LiveSession {
  const { clock, counters, delivery, logger, telemetry } = deps;
  const { nodeId, id } = pending;
  let state: SessionState = startState({
    nodeId,
    openedAt: pending.openedAt,
    streamAt,
    rekeyAfterSecs: deps.rekeySeconds,
    intervals: pending.intervals,
  });
  let proven = false;
  let paused = false;
  /** The agent cannot be heard through no fault of its own, or pays for what it has sent. */
  let excused = false;
  let over = false;
  let throttled = false;

  const run = (input: SessionInput): void => {
    const stepped = step(state, input, clock.monotonic());
    state = stepped.state;
    for (const output of stepped.outputs) perform(output);
  };
  const drain = (): void => run({ kind: 'draining', retryAfterMs: jittered(tuning.drainRetryMs, deps.random) });
  const drainAfter = (error: unknown, message: string): void => {
    if (over) return;
    logger.warn({ node_id: nodeId, session_id: id, error: errorText(error) }, message);
    drain();
  };

  const unfinished = deps.unfinished.share();
  const budget = deps.readBudget(nodeId);
  const inbound = createInbound(pending.noise.receive, pending.sessionId);
  const outbox = createOutbox({
    stream,
    cipher: pending.noise.send,
    now: () => clock.monotonic(),
    onSent(push) {
      countIn(counters.snapshots, 'sent');
      config.sent(push);
    },
    onSnapshot: (fate) => countIn(counters.snapshots, fate),
    onProgress: () => balance(),
    onFrame() {
      counters.framesOut += 1;
    },
  });
  const send = (payload: ServicePayload['payload']): void => outbox.send(ServicePayload.encode({ payload }).finish());
  const config = createConfigExchange({
    delivery,
    clock,
    onAnswer: (answer) => run({ kind: 'config_answer', answer }),
    onFailed: (error) => drainAfter(error, 'agent drained: its configuration cannot be served'),
    onProgress: () => balance(),
  });
  const heartbeats = createHeartbeats(
    {
      delivery,
      hasCommands: () => deps.hasCommands(nodeId),
      claimCommands: () => deps.claimCommands(nodeId),
      send: (payload) => outbox.send(payload),
      onIntervals: (intervals) => run({ kind: 'intervals', intervals }),
      onFailed: (error) => drainAfter(error, 'agent drained: its heartbeat cannot be answered'),
      onProgress: () => balance(),
    },
    pending.intervals,
  );
  const closing = createSessionClosing(stream, outbox);

  /**
   * Stops reading while this side is busy, the agent has sent more than it may or does not read its answers, so that
   * nothing piles up here: HTTP/2 flow control holds the agent back. What it is sent goes on meanwhile.
   */
  const balance = (): void => {
    if (over) return;
    const spent = state.phase === 'live' && budget.spent;
    if (spent && !throttled) counters.readPauses += 1;
    throttled = spent;
    const busy = spent || Math.max(config.waiting, heartbeats.waiting) >= tuning.serialQueueRequests;
    const full = outbox.waiting >= tuning.outboxPayloads;
    const resumes = paused && !busy && !full;
    if ((busy || full) !== paused) {
      paused = busy || full;
      stream.pause(paused);
    }
    // While only `full` holds, the agent is to blame for its silence and may become idle.
    if (busy === excused && !resumes) return;
    excused = busy;
    run({ kind: 'paused', paused: busy });
  };

  const presence = (): PresenceFacts => ({
    session_id: id,
    instance_id: deps.instanceId,
    pushed_generation: config.pushed?.generation ?? 0,
    pushed_at: config.pushed?.at ?? null,
  });

  const perform = (output: SessionOutput): void => {
    switch (output.kind) {
      case 'hello':
        config.open(nodeId, id, outbox);
        deps.onHello(session, output.hello).catch((error: unknown) => {
          drainAfter(error, 'agent drained: its session cannot be recorded');
        });
        return;
      case 'charge':
        budget.payload(output.entries);
        return;
      case 'alive':
        telemetry.alive(nodeId, presence(), heartbeats.intervals.offlineAfterMs);
        return;
      case 'heartbeat':
        telemetry.heartbeat(nodeId, heartbeatFacts(output.heartbeat));
        heartbeats.answer(output.heartbeat);
        return;
      case 'config_request':
        config.request(output.version, output.checksum);
        return;
      case 'apply_report':
        config.report(output.outcome);
        return;
      case 'ignored_report':
        counters.ignoredReports += 1;
        return;
      case 'metrics':
        telemetry.metrics(nodeId, metricsFacts(output.metrics));
        return;
      case 'send_unchanged':
        send({
          $case: 'configUpdate',
          value: { update: { $case: 'unchanged', value: { generation: BigInt(output.generation) } } },
        });
        return;
      case 'send_snapshot':
        outbox.offer(output.push);
        return;
      case 'end':
        end(output.reason, output.agentReason);
        return;
      default:
        unreachable(output);
    }
  };

  const end = (reason: CloseReason, agentReason: SessionCloseReason | undefined): void => {
    over = true;
    countIn(counters.ends, reason.cause);
    unfinished.hold(0);
    inbound.discard();
    config.close();
    heartbeats.close();
    deps.onEnded(session, reason, agentReason);
    if (reason.cause === 'lost') return;
    closing.begin(reason, proven);
  };

  const receive = (incoming: Inbound, bytes: number): void => {
    counters.framesIn += 1;
    budget.frame(bytes);
    if (!proven && inbound.proven) {
      proven = true;
      deps.onProven(session, stream.connection);
    }
    unfinished.hold(inbound.heldBytes);
    if (unfinished.exceeded && incoming.kind === 'fragment') {
      return run({ kind: 'overloaded', retryAfterMs: jittered(tuning.overloadRetryMs, deps.random) });
    }
    run(incoming);
    balance();
  };

  const session: LiveSession = {
    nodeId,
    id,
    address: stream.connection.remoteAddress,
    openedAt: pending.openedAt,
    presence,
    get offlineAfterMs() {
      return heartbeats.intervals.offlineAfterMs;
    },
    frame(frame) {
      if (!over) receive(inbound.takeFrame(frame), frame.ciphertext.length);
    },
    message(bytes) {
      if (!over) receive(inbound.take(bytes), bytes.length);
    },
    halfClosed: () => run({ kind: 'half_closed' }),
    gone() {
      run({ kind: 'lost' });
      closing.gone();
    },
    supersede: () => run({ kind: 'superseded' }),
    revoke: () => run({ kind: 'revoked' }),
    drain,
    tick(now) {
      if (throttled) balance();
      if (!over && mayHaveEnded(state, now)) run({ kind: 'tick' });
    },
    slowFor: (now) => (outbox.writingSince === undefined ? 0 : now - outbox.writingSince),
    get throttled() {
      return throttled && !over;
    },
    closed: closing.closed,
  };
  return session;
}

/** Saves a step for each of ten thousand quiet sessions every time they are checked. */
function mayHaveEnded(state: SessionState, now: number): boolean {
  if (state.phase === 'over') return false;
  if (state.phase === 'hello' || state.unfinishedSince !== undefined || now > state.expiresAt) return true;
  return now - state.lastPayloadAt > state.intervals.offlineAfterMs;
}
