/**
 * One attached session at work: feeds the pure machine (`session.ts`) with what comes and carries out what it says,
 * with delivery, telemetry and the stream. Decides nothing of its own but when to stop reading.
 * Implements `docs/contract/agent-protocol.md#control`, and Heartbeats.
 */
import type { AgentCommandName, ApplyReport, Delivery, NodeSession } from '../../delivery/port.js';
import { ServicePayload } from '../../gen/svc/control/v1/session.js';
import type { AgentHello, SessionCloseReason } from '../../gen/svc/control/v1/session.js';
import type { HeartbeatRequest } from '../../gen/svc/control/v1/heartbeat.js';
import { withDeadline } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { timestamp } from '../../kernel/clock.js';
import { errorText, unreachable } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import type { Logger } from '../../kernel/logger.js';
import type { PresenceFacts, Telemetry } from '../../telemetry/port.js';
import type { PendingSession } from './admission/pending-table.js';
import type { AgentConnection, AgentStream } from './agent-stream.js';
import { countIn } from './counters.js';
import type { Counters } from './counters.js';
import { jittered } from './close-reasons.js';
import type { End } from './close-reasons.js';
import type { Frame } from './frame.js';
import { heartbeatResponse } from './heartbeat-response.js';
import { createInbound } from './inbound.js';
import type { Inbound } from './inbound.js';
import { createLane } from './serial-queue.js';
import { createOutbox } from './outbox.js';
import { startState, step } from './session.js';
import type { SessionInput, SessionOutput, SessionState } from './session.js';
import { heartbeatFacts, metricsFacts } from './telemetry-facts.js';
import { toldBy } from './agent-intervals.js';
import type { Told } from './agent-intervals.js';
import { tuning } from './tuning.js';

export interface LiveSessionDeps {
  readonly delivery: Pick<Delivery, 'openNodeSession' | 'settings'>;
  readonly telemetry: Pick<Telemetry, 'alive' | 'heartbeat' | 'metrics' | 'sessionEnded'>;
  /** At most 16, oldest first; each is claimed once. */
  claimCommands(nodeId: string): Promise<readonly AgentCommandName[]>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  readonly instanceId: string;
  readonly rekeySeconds: number;
  readonly counters: Counters;
  /** Held by unfinished messages of all sessions. */
  readonly unfinished: { bytes: number; readonly maxBytes: number };
  /** The session's first valid frame has come. */
  onProven(session: LiveSession, connection: AgentConnection): void;
  /** The hello has come: the session becomes its node's live one. Rejects when the stores are out of reach. */
  onHello(session: LiveSession, hello: AgentHello): Promise<void>;
  /** The session has ended: nothing comes from it any more; its stream may still be closing. */
  onEnded(session: LiveSession, end: End, agentReason: SessionCloseReason | undefined): void;
}

export interface LiveSession {
  readonly nodeId: string;
  /** Lower-case hex. */
  readonly id: string;
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
  /** Looks at the time limits. */
  tick(now: number): void;
  /** Milliseconds for which the peer has not taken the fragment on its way. */
  slowFor(now: number): number;
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
  const { clock, counters, delivery, logger, telemetry, unfinished } = deps;
  const { nodeId, id } = pending;
  let told: Told = pending.told;
  let state: SessionState = startState({
    nodeId,
    openedAt: pending.openedAt,
    streamAt,
    rekeyAfterSecs: deps.rekeySeconds,
    told,
  });
  let attachment: NodeSession | undefined;
  let pushed: { readonly generation: number; readonly at: string } | undefined;
  let proven = false;
  let held = false;
  let heldBytes = 0;
  let over = false;
  let cut: NodeJS.Timeout | undefined;
  let resolveClosed: () => void = () => undefined;
  const closed = new Promise<void>((resolve) => {
    resolveClosed = resolve;
  });

  const inbound = createInbound(pending.noise.receive, pending.sessionId);
  const outbox = createOutbox({
    stream,
    cipher: pending.noise.send,
    now: () => clock.monotonic(),
    onSent(push) {
      counters.snapshotsSent += 1;
      pushed = { generation: push.generation, at: timestamp(clock.now()) };
      attachment?.sent(push);
    },
    onProgress: () => balance(),
    onFrame() {
      counters.framesOut += 1;
    },
  });
  const drainFor = (error: unknown, what: string): void => {
    logger.warn({ node_id: nodeId, session_id: id, error: errorText(error) }, what);
    run({ kind: 'draining', retryAfterMs: jittered(tuning.drainRetryMs, deps.random) });
  };
  const configLane = createLane(
    (error) => drainFor(error, 'an agent is drained: its configuration can not be served'),
    () => balance(),
  );
  const heartbeatLane = createLane(
    (error) => drainFor(error, 'an agent is drained: its heartbeat can not be answered'),
    () => balance(),
  );

  /** Stops reading while this side, or the peer's reading, is behind; so nothing piles up here. */
  const balance = (): void => {
    if (over) return;
    const busy = configLane.size >= tuning.serialQueueRequests || heartbeatLane.size >= tuning.serialQueueRequests;
    const full = outbox.waiting >= tuning.outboxPayloads;
    if ((busy || full) === held) return;
    held = busy || full;
    stream.pause(held);
    // An agent that does not read its answers is silent by its own doing.
    if (busy || !held) run({ kind: 'held', held });
  };

  const presence = (): PresenceFacts => ({
    session_id: id,
    instance_id: deps.instanceId,
    pushed_generation: pushed?.generation ?? 0,
    pushed_at: pushed?.at ?? null,
  });

  const say = (payload: ServicePayload['payload']): void => outbox.send(ServicePayload.encode({ payload }).finish());

  const answerHeartbeat = async (heartbeat: HeartbeatRequest): Promise<void> => {
    const claimed = await deps.claimCommands(nodeId);
    if (over) return;
    const now = toldBy(delivery.settings());
    told = now;
    say(heartbeatResponse(heartbeat, claimed, now));
    run({ kind: 'told', told: now });
  };

  const report = async (outcome: ApplyReport): Promise<void> => attachment?.report(outcome);

  const perform = (output: SessionOutput): void => {
    switch (output.kind) {
      case 'hello': {
        attachment = delivery.openNodeSession(nodeId, id, outbox);
        const { hello } = output;
        deps.onHello(session, hello).catch((error: unknown) => {
          drainFor(error, 'an agent is drained: its session can not be recorded');
        });
        return;
      }
      case 'alive':
        telemetry.alive(nodeId, presence(), told.offlineAfterMs);
        return;
      case 'heartbeat': {
        const { heartbeat } = output;
        telemetry.heartbeat(nodeId, heartbeatFacts(heartbeat));
        heartbeatLane.run(() => answerHeartbeat(heartbeat));
        return;
      }
      case 'config_request': {
        const { version, checksum } = output;
        configLane.run(async () => {
          const answer = await attachment?.request(version, checksum);
          if (answer !== undefined) run({ kind: 'config_answer', answer });
        });
        return;
      }
      case 'apply_report': {
        const { outcome } = output;
        // The fact may wait for the event store for as long as it is away: neither this session nor its requests do.
        configLane.run(async () => void (await withDeadline(report(outcome), tuning.reportWaitMs)));
        return;
      }
      case 'ignored_report':
        counters.ignoredReports += 1;
        return;
      case 'metrics':
        telemetry.metrics(nodeId, metricsFacts(output.metrics));
        return;
      case 'send_unchanged':
        say({
          $case: 'configUpdate',
          value: { update: { $case: 'unchanged', value: { generation: BigInt(output.generation) } } },
        });
        return;
      case 'send_snapshot':
        outbox.offer(output.push);
        return;
      case 'end':
        end(output.end, output.agentReason);
        return;
      default:
        unreachable(output);
    }
  };

  const end = (ending: End, agentReason: SessionCloseReason | undefined): void => {
    over = true;
    countIn(counters.ends, ending.cause);
    unfinished.bytes -= heldBytes;
    heldBytes = 0;
    inbound.discard();
    configLane.close();
    heartbeatLane.close();
    attachment?.close();
    deps.onEnded(session, ending, agentReason);
    if (ending.cause === 'lost') return;
    logger.debug({ node_id: nodeId, session_id: id, cause: ending.cause }, 'agent session ended');
    // Nothing is said to a peer that has not proven itself.
    const last = proven ? ending.close : undefined;
    outbox.finish(
      last === undefined ? undefined : ServicePayload.encode({ payload: { $case: 'close', value: last } }).finish(),
      ending.status,
    );
    const patience = ending.cause === 'revoked' ? tuning.revokedFlushMs : limits.agent.closeGraceMs;
    cut = setTimeout(() => stream.kill(), patience);
    if (ending.cause === 'revoked') {
      // Even one that reads is cut: the status is out, the connection has no business here any more.
      void closed.then(() => setTimeout(() => stream.kill(), tuning.revokedLingerMs));
    }
  };

  const run = (input: SessionInput): void => {
    const stepped = step(state, input, clock.monotonic());
    state = stepped.state;
    for (const output of stepped.outputs) perform(output);
  };

  const receive = (incoming: Inbound): void => {
    counters.framesIn += 1;
    if (!proven && inbound.proven) {
      proven = true;
      deps.onProven(session, stream.connection);
    }
    unfinished.bytes += inbound.heldBytes - heldBytes;
    heldBytes = inbound.heldBytes;
    if (unfinished.bytes > unfinished.maxBytes && incoming.kind === 'fragment') {
      return run({ kind: 'overloaded', retryAfterMs: jittered(tuning.overloadRetryMs, deps.random) });
    }
    run(incoming);
    balance();
  };

  const session: LiveSession = {
    nodeId,
    id,
    openedAt: pending.openedAt,
    presence,
    get offlineAfterMs() {
      return told.offlineAfterMs;
    },
    frame(frame) {
      if (!over) receive(inbound.takeFrame(frame));
    },
    message(bytes) {
      if (!over) receive(inbound.take(bytes));
    },
    halfClosed: () => run({ kind: 'half_closed' }),
    gone() {
      run({ kind: 'lost' });
      clearTimeout(cut);
      outbox.discard();
      resolveClosed();
    },
    supersede: () => run({ kind: 'superseded' }),
    revoke: () => run({ kind: 'revoked' }),
    drain: () => run({ kind: 'draining', retryAfterMs: jittered(tuning.drainRetryMs, deps.random) }),
    tick(now) {
      if (!over && mayHaveEnded(state, now)) run({ kind: 'tick' });
    },
    slowFor: (now) => (outbox.writingSince === undefined ? 0 : now - outbox.writingSince),
    closed,
  };
  return session;
}

/** Spares ten thousand quiet sessions a step each time they are looked at. */
function mayHaveEnded(state: SessionState, now: number): boolean {
  if (state.phase === 'over') return false;
  if (state.phase === 'hello' || state.unfinishedSince !== undefined || now > state.expiresAt) return true;
  return now - state.lastPayloadAt > state.told.offlineAfterMs;
}
