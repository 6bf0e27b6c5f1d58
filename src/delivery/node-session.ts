/**
 * The `NodeSession` of the port: handles the requests and reports of one session, and offers it changed snapshots. An offer never
 * overtakes an answer, and none is made before the first answer. Implements `docs/contract/agent-protocol.md#configuration`.
 */
import { rolloutKey } from '../domain/rollout/rollout.js';
import type { Clock } from '../kernel/clock.js';
import type { Answerer } from './answer.js';
import { confirmedWithin } from './encode.js';
import type { Newest } from './newest.js';
import type { ApplyReport, ConfigAnswer, NodeSession, PushSlot, SnapshotPush } from './port.js';
import { noteOffered, noteSent, type SessionState, type SessionRegistry } from './session-registry.js';
import type { ApplyHistories } from './apply-history.js';
import type { ReportTurns } from './report-turns.js';
import { tryAgain, type Retries } from './retries.js';
import { confirmWithin, holdOf, rejectOf } from './target.js';
import type { ApplyReports, ApplyReportsDeps } from './apply-reports.js';
import type { TimeToApplied } from './time-to-applied.js';

export interface SessionServerDeps extends Pick<ApplyReportsDeps, 'newest' | 'generation' | 'waits' | 'need'> {
  readonly sessions: SessionRegistry;
  readonly histories: ApplyHistories;
  readonly applyReports: Pick<ApplyReports, 'report' | 'confirm'>;
  readonly reportTurns: Pick<ReportTurns, 'turn'>;
  readonly retries: Pick<Retries, 'reload'>;
  readonly timeToApplied: Pick<TimeToApplied, 'offered'>;
  readonly clock: Clock;
  readonly answer: Answerer;
  mayPush(): boolean;
  /** Serves the node's sessions soon. */
  touch(nodeId: string): void;
}

/** Shared by the sessions of an instance. */
interface Parts extends Pick<
  SessionServerDeps,
  'applyReports' | 'clock' | 'histories' | 'reportTurns' | 'retries' | 'sessions'
> {
  request(session: SessionState, configVersion: bigint, checksum: Uint8Array): Promise<ConfigAnswer>;
  releaseIfClosed(session: SessionState): void;
}

/** A class, because there is one for each agent: see `src/channel/noise/cipher-state.ts`. */
class OpenSession implements NodeSession {
  readonly #parts: Parts;
  readonly #session: SessionState;

  constructor(parts: Parts, session: SessionState) {
    this.#parts = parts;
    this.#session = session;
  }

  request(configVersion: bigint, checksum: Uint8Array): Promise<ConfigAnswer> {
    return this.#parts.request(this.#session, configVersion, checksum);
  }
  reportTurn(): Promise<void> | undefined {
    return this.#parts.reportTurns.turn();
  }
  async report(report: ApplyReport, at: number): Promise<void> {
    const { histories, applyReports, releaseIfClosed } = this.#parts;
    const session = this.#session;
    try {
      const record = histories.peek(session.nodeId) ?? (await histories.load(session.nodeId));
      await applyReports.report(record, session, report, at);
    } finally {
      if (session.unreported !== undefined && report.generation >= BigInt(session.unreported.generation)) {
        session.unreported = undefined;
      }
      releaseIfClosed(session);
    }
  }
  beat(): boolean {
    const { histories, applyReports } = this.#parts;
    const record = histories.peek(this.#session.nodeId);
    if (record !== undefined) applyReports.confirm(record, this.#session);
    return record !== undefined;
  }
  sent(push: SnapshotPush): void {
    noteSent(this.#session, push, this.#parts.clock);
  }
  async reload(): Promise<void> {
    const { histories, retries, releaseIfClosed } = this.#parts;
    try {
      retries.reload(await histories.load(this.#session.nodeId));
    } finally {
      releaseIfClosed(this.#session);
    }
  }
  close(): void {
    if (this.#parts.sessions.remove(this.#session)) this.#parts.histories.release(this.#session.nodeId);
  }
}

function isAboutRollouts(changed: Iterable<string>): boolean {
  for (const resource of changed) if (resource.startsWith(`${rolloutKey.type}/`)) return true;
  return false;
}

export function createSessionServer(deps: SessionServerDeps) {
  const { sessions, histories } = deps;
  let offered = 0;
  /** Nodes with a session here whose newest snapshot a hold has withheld. */
  const held = new Set<string>();

  const request = async (session: SessionState, configVersion: bigint, checksum: Uint8Array): Promise<ConfigAnswer> => {
    session.answering += 1;
    try {
      const answer = await deps.answer(session, configVersion, checksum);
      if (answer.kind === 'snapshot' || answer.kind === 'unchanged') session.opened = true;
      if (answer.kind === 'snapshot') {
        deps.timeToApplied.offered(session.offers, answer.push.generation, deps.clock.monotonic());
        session.unreported = answer.push;
      }
      if (deps.waits(session.nodeId)) held.add(session.nodeId);
      if (answer.kind !== 'snapshot') return answer;
      return { kind: 'snapshot', push: asSent(session, answer.push) };
    } finally {
      releaseIfClosed(session);
      // Deferred until the caller has the answer: a snapshot committed meanwhile is offered only after it.
      setImmediate(() => {
        session.answering -= 1;
        const generation = deps.generation(session.nodeId) ?? 0;
        if (!session.closed && session.opened && session.considered < generation) deps.touch(session.nodeId);
      });
    }
  };

  /** A snapshot as it is sent: with the time in which it must be confirmed, if it must. */
  const asSent = ({ nodeId, confirm }: SessionState, push: SnapshotPush): SnapshotPush => {
    const record = confirm === undefined ? undefined : histories.peek(nodeId);
    const secs = record && confirmWithin(deps.need(nodeId), record.history, push.generation);
    return secs === undefined ? push : confirmedWithin(push, secs);
  };

  /** @returns the bytes of the snapshot */
  const offer = (nodeId: string, newest: Newest<SnapshotPush>): number => {
    const record = histories.peek(nodeId);
    if (newest.kind !== 'made' || record === undefined) return 0;
    if (!deps.mayPush()) {
      deps.touch(nodeId);
      return 0;
    }
    const push = newest.value;
    const isOffered = rejectOf(record.history, newest.stamp) === undefined || tryAgain(record) === push.generation;
    for (const session of sessions.waitingFor(nodeId, push.generation)) {
      session.considered = push.generation;
      // A rejected snapshot is offered only as a retry.
      if (!isOffered) continue;
      if (record.retry !== undefined) record.retry.offeredTo = session.sessionId;
      deps.timeToApplied.offered(session.offers, push.generation, deps.clock.monotonic());
      noteOffered(session, push, deps.clock.monotonic());
      session.slot.offer(asSent(session, push));
      offered += 1;
    }
    return push.payload.length;
  };

  /** Releases a history that was loaded while its session was being closed. */
  const releaseIfClosed = (session: SessionState): void => {
    if (session.closed && !sessions.has(session.nodeId)) histories.release(session.nodeId);
  };

  const parts: Parts = { ...deps, request, releaseIfClosed };

  return {
    open: (nodeId: string, sessionId: string, slot: PushSlot, confirm?: SessionState['confirm']): NodeSession =>
      new OpenSession(parts, sessions.add(nodeId, sessionId, slot, confirm)),
    /** Offers the newest snapshot to the node's sessions that lack it. @returns the bytes made for it */
    serve(nodeId: string): number {
      const generation = deps.generation(nodeId);
      if (generation === undefined) return 0;
      const waiting = sessions.waitingFor(nodeId, generation);
      if (waiting.length === 0) return 0;
      const record = histories.peek(nodeId);
      const waits = deps.waits(nodeId, record?.history.applied?.generation);
      if (record !== undefined && holdOf(waits, record.history) !== 'none') {
        held.add(nodeId);
        for (const session of waiting) session.considered = generation;
        return 0;
      }
      return offer(nodeId, deps.newest.get(nodeId));
    },
    /** Offers the newest snapshot to nodes that were held and no longer wait. @param changed resources, as `type/id` */
    release(changed: Iterable<string>): void {
      if (held.size === 0 || !isAboutRollouts(changed)) return;
      for (const nodeId of held) {
        if (deps.waits(nodeId)) continue;
        held.delete(nodeId);
        const generation = deps.generation(nodeId);
        const hasIt = histories.peek(nodeId)?.history.applied?.generation === generation;
        if (generation === undefined || hasIt || sessions.owes(nodeId, generation)) continue;
        sessions.reconsider(nodeId);
        deps.touch(nodeId);
      }
    },
    /** Offers made since the start. */
    offered: (): number => offered,
  };
}
