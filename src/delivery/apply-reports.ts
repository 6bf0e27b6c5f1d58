/**
 * Handles apply reports and the confirmations in ConfigRequests: updates the node's apply history, saves the applied snapshot as
 * its last-good one, and records each fact once. Reports on other snapshots than the newest and the last-good one, and those of
 * superseded sessions, are only counted. Implements `docs/contract/agent-protocol.md#configuration`.
 */
import type { AgentEvent, ApplyError, RecordFact } from '../domain/agents/facts.js';
import type { NodeNeed } from '../domain/confirmation/confirmation.js';
import type { Clock } from '../kernel/clock.js';
import { logsWarning, type LogFields, type Logger } from '../kernel/logger.js';
import type { LastGoodSnapshots } from './last-good.js';
import type { NewestSnapshots } from './newest.js';
import type { ApplyReport, SnapshotPush } from './port.js';
import type { Retries } from './retries.js';
import type { ApplyHistoryRecord } from './apply-history.js';
import type { Applied, SessionState } from './session-registry.js';
import type { TimeToApplied } from './time-to-applied.js';
import {
  afterApply,
  afterReject,
  confirmWithin,
  isRecordedNewest,
  judgedErrors,
  recordedErrors,
  rejectOf,
  sameStamp,
  snapshotNamed,
  stampOf,
  type Stamp,
} from './target.js';

/** The session that a report came on. */
type ReportingSession = Pick<
  SessionState,
  'sessionId' | 'offers' | 'superseded' | 'unreported' | 'opened' | 'confirm' | 'unconfirmed'
>;

type ReportOutcome = ApplyReport['status'] | 'ignored';

export interface ApplyReportsDeps {
  readonly newest: Omit<NewestSnapshots, 'checkCompilerVersion'>;
  readonly lastGood: Pick<LastGoodSnapshots, 'save'>;
  readonly timeToApplied: Pick<TimeToApplied, 'applied' | 'rejected'>;
  readonly retries: Pick<Retries, 'rejected'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly logger: Logger;
  /** Gets a line when a node rejects its configuration, and when it applies again. */
  readonly sessionLog: Logger;
  /** The newest generation of a node. */
  generation(nodeId: string): number | undefined;
  /** The node waits for its wave of a rollout. @param applied as `FleetView.heldBy` takes it */
  waits(nodeId: string, applied?: number): boolean;
  /** The node's last need for a confirmation. */
  need(nodeId: string): NodeNeed | undefined;
  readonly recordFact: RecordFact;
}

/** Longest place of an error in a log line, in characters. */
const placeChars = 256;

/** Records facts, and notes the outcome in the history record. */
function createRecorder(deps: Pick<ApplyReportsDeps, 'clock' | 'recordFact'>) {
  return async (entry: ApplyHistoryRecord, sessionId: string, event: AgentEvent): Promise<void> => {
    // A repeat is not recorded while this one is being written.
    entry.recorded = true;
    entry.reportedAt = deps.clock.now();
    try {
      const outcome = await deps.recordFact(entry.nodeId, event, sessionId);
      if (outcome === 'superseded' || outcome === 'refused') entry.recorded = false;
      // Not earlier than the fact's own time.
      else entry.reportedAt = deps.clock.now();
    } catch (error) {
      // The agent repeats its last report in its next session.
      entry.recorded = false;
      throw error;
    }
  };
}

/** The stamp of the newest snapshot, whose generation `claimed` has; undefined while it cannot be made. */
function newestStamp(
  newestSnapshots: ApplyReportsDeps['newest'],
  { nodeId, history }: ApplyHistoryRecord,
  claimed: Stamp,
): Stamp | undefined {
  if (isRecordedNewest(claimed, history, claimed.generation)) return claimed;
  const newest = newestSnapshots.stamp(nodeId);
  return newest.kind === 'made' ? newest.stamp : undefined;
}

/** Acts on the report of an apply, and on its confirmation. */
function createApplied(deps: ApplyReportsDeps, record: ReturnType<typeof createRecorder>) {
  const applied = async (entry: ApplyHistoryRecord, session: ReportingSession, outcome: Applied): Promise<void> => {
    const { sessionId, offers } = session;
    const { stamp, durationMs, at } = outcome;
    deps.timeToApplied.applied(offers, stamp.generation, at);
    const { history } = entry;
    const before = history.applied?.generation ?? 0;
    const isRepeat = sameStamp(history.applied, stamp) && !history.rejectedSince && entry.recorded;
    const rejectedBefore = newestReject(entry);
    // Before any wait, so that the next report comes after it.
    entry.history = afterApply(history, stamp);
    if (rejectedBefore > 0 && newestReject(entry) === 0) {
      const fields = { node_id: entry.nodeId, session_id: sessionId, generation: stamp.generation };
      deps.sessionLog.info({ ...fields, rejected_generation: rejectedBefore }, 'a node applies configurations again');
    }
    const recording = isRepeat
      ? undefined
      : record(entry, sessionId, {
          type: 'AgentConfigApplied',
          data: {
            node_id: entry.nodeId,
            ...stamp,
            duration_ms: durationMs,
            ...(stamp.generation < before ? { falls_from: before } : {}),
          },
        });
    const need = session.confirm === undefined ? undefined : deps.need(entry.nodeId);
    if (confirmWithin(need, entry.history, stamp.generation) === undefined) saveApplied(entry, outcome);
    if (need !== undefined) {
      session.unconfirmed = outcome;
      // The agent applied it before it opened this session.
      if (!session.opened) confirm(entry, session);
    }
    await recording;
  };

  const confirm = (entry: ApplyHistoryRecord, session: ReportingSession): void => {
    const { confirm: tell, unconfirmed, sessionId, superseded } = session;
    session.unconfirmed = undefined;
    if (tell === undefined || unconfirmed === undefined || superseded) return;
    const { nodeId, history } = entry;
    const { generation } = unconfirmed.stamp;
    tell(generation);
    if (confirmWithin(deps.need(nodeId), history, generation) === undefined) return;
    entry.history = { ...history, confirmed: generation };
    saveApplied(entry, unconfirmed);
    const event: AgentEvent = { type: 'AgentConfigConfirmed', data: { node_id: nodeId, generation } };
    deps
      .recordFact(nodeId, event, sessionId)
      .catch(logsWarning(deps.logger, 'a confirmation was not recorded', { node_id: nodeId }));
  };

  /** Keeps the bytes of the snapshot that the node runs, unless it is its last-good one already. */
  const saveApplied = (entry: ApplyHistoryRecord, { named, stamp, pushed }: Applied): void => {
    if (named === 'newest') saveNewest(entry, stamp);
    if (named === 'pushed' && pushed !== undefined) save(entry, pushed);
  };

  const saveNewest = (entry: ApplyHistoryRecord, stamp: Stamp): void => {
    if (sameStamp(entry.history.lastGood, stamp)) return;
    const newest = deps.newest.get(entry.nodeId);
    // If there is a newer snapshot by now, the last-good one stays.
    if (newest.kind === 'made' && sameStamp(newest.stamp, stamp)) save(entry, newest.value);
  };

  const save = (entry: ApplyHistoryRecord, push: SnapshotPush): void => {
    deps.lastGood.save(entry.nodeId, push);
    entry.history = { ...entry.history, lastGood: stampOf(push) };
  };

  return { applied, confirm };
}

export type ApplyReports = ReturnType<typeof createApplyReports>;

export function createApplyReports(deps: ApplyReportsDeps) {
  const record = createRecorder(deps);
  const { applied, confirm } = createApplied(deps, record);
  const counts = new Map<ReportOutcome, number>();
  const count = (outcome: ReportOutcome): void => void counts.set(outcome, (counts.get(outcome) ?? 0) + 1);

  const ignore = (nodeId: string): void => {
    count('ignored');
    deps.logger.debug(
      { node_id: nodeId },
      'an apply report is ignored: neither on the newest nor on the last-good snapshot, or from a superseded session',
    );
  };

  const rejected = async (
    entry: ApplyHistoryRecord,
    session: ReportingSession,
    stamp: Stamp,
    errors: readonly ApplyError[],
  ): Promise<void> => {
    const { sessionId, offers } = session;
    session.unconfirmed = undefined;
    deps.timeToApplied.rejected(offers, stamp.generation);
    const reported = recordedErrors(errors);
    const reject = { ...stamp, sessionId, ...judgedErrors(reported) };
    const isRepeat = rejectOf(entry.history, stamp)?.errors === reject.errors && entry.recorded;
    entry.history = afterReject(entry.history, reject, isRepeat);
    deps.retries.rejected(entry, stamp.generation, sessionId);
    if (isRepeat) return;
    const fields = { node_id: entry.nodeId, session_id: sessionId, generation: stamp.generation };
    deps.sessionLog.warn({ ...fields, ...placesOf(errors) }, 'a node rejected its configuration');
    await record(entry, sessionId, {
      type: 'AgentConfigRejected',
      data: { node_id: entry.nodeId, ...stamp, errors: reported },
    });
  };

  return {
    /** Notes that the node runs a snapshot. The history changes at once; resolves like `report`. */
    applied,
    /** The agent was seen after an apply in this session: tells it that the apply is confirmed. */
    confirm,
    /** Reports by outcome since the start, without confirmations in ConfigRequests. */
    counts: (): ReadonlyMap<ReportOutcome, number> => counts,
    /**
     * Resolves once the report's fact is recorded or dropped. @throws ServiceError `unavailable`
     * @param at when it arrived, monotonic milliseconds
     */
    async report(entry: ApplyHistoryRecord, session: ReportingSession, report: ApplyReport, at: number): Promise<void> {
      const generation = deps.generation(entry.nodeId);
      if (generation === undefined || report.generation > BigInt(generation)) return ignore(entry.nodeId);
      const stamp: Stamp = {
        generation: Number(report.generation),
        checksum: Buffer.from(report.checksum).toString('hex'),
      };
      const newest = stamp.generation === generation ? newestStamp(deps.newest, entry, stamp) : undefined;
      const pushed = deps.waits(entry.nodeId) ? session.unreported : undefined;
      const named = snapshotNamed(stamp, { newest, lastGood: entry.history.lastGood, pushed });
      // A last-good snapshot from another log may share the newest one's generation, and would be mistaken for it.
      const mistakable = named === 'last_good' && newest?.generation === stamp.generation;
      if (named === undefined || mistakable || session.superseded) return ignore(entry.nodeId);
      count(report.status);
      if (report.status === 'rejected') return rejected(entry, session, stamp, report.errors);
      return applied(entry, session, { stamp, named, pushed, durationMs: report.durationMs, at });
    },
  };
}

/** The newest generation that the node rejected without applying it or a later one since; 0 without one. */
function newestReject({ history }: ApplyHistoryRecord): number {
  return Math.max(0, ...history.rejected.map(({ generation }) => generation));
}

/** The resources that an agent rejects. Its messages are not logged, because they may contain anything. */
function placesOf(errors: readonly ApplyError[]): LogFields {
  const [first] = errors;
  if (first === undefined) return { errors: 0 };
  const { resource_type, resource_id, path } = first;
  const place = `${resource_type} ${resource_id} ${path}`.slice(0, placeChars);
  return { errors: errors.length, first_error: place };
}
