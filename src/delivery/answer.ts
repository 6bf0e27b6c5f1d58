/**
 * Answers ConfigRequests: raises the generation if the agent is ahead of it, records what the request confirms, and answers with
 * the target or "unchanged". Implements `docs/contract/agent-protocol.md#configuration`.
 */
import { ServiceError, errorText, unreachable } from '../kernel/errors.js';
import type { Clock } from '../kernel/clock.js';
import { limits } from '../kernel/limits.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import type { LastGoodSnapshots } from './last-good.js';
import type { Newest, NewestSnapshots } from './newest.js';
import type { ConfigAnswer } from './port.js';
import type { GenerationRaises } from './generation-raise.js';
import { tryAgain, type Retries } from './retries.js';
import type { SessionState } from './session-registry.js';
import type { ApplyHistoryRecord, ApplyHistories } from './apply-history.js';
import {
  holdOf,
  isRecordedNewest,
  rejectOf,
  sameStamp,
  snapshotNamed,
  stampOf,
  targetOf,
  versionClaim,
  type Hold,
  type Stamp,
} from './target.js';
import type { ApplyReports, ApplyReportsDeps } from './apply-reports.js';

export interface AnswerDeps
  extends Pick<NewestSnapshots, 'checkCompilerVersion'>, Pick<ApplyReportsDeps, 'newest' | 'generation' | 'waits'> {
  readonly lastGood: Pick<LastGoodSnapshots, 'load'>;
  readonly histories: Pick<ApplyHistories, 'load'>;
  readonly applyReports: Pick<ApplyReports, 'applied'>;
  readonly retries: Pick<Retries, 'asked'>;
  readonly raises: Pick<GenerationRaises, 'raise' | 'conflict'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** True once the fold is up to date, false after a bounded wait. */
  upToDate(): Promise<boolean>;
  /** True once the fold has reached the current end of the log, false after a bounded wait. */
  atHead(): Promise<boolean>;
  drainRetryMs(): number;
}

interface Claim {
  readonly version: bigint;
  /** Undefined for an agent without a configuration, or without its checksum. */
  readonly stamp: Stamp | undefined;
}

/** How far a version ahead of the fold has been checked: on arrival, again at the end of the log, and after a raise. */
type Stage = 'arrived' | 'at_head' | 'raised';

/** Never throws: a request that cannot be answered now is drained. */
export type Answerer = (session: SessionState, configVersion: bigint, checksum: Uint8Array) => Promise<ConfigAnswer>;

export function createAnswerer(deps: AnswerDeps): Answerer {
  const draining = (): ConfigAnswer => ({ kind: 'draining', retryAfterMs: deps.drainRetryMs() });
  const { ofTarget, withoutNewest } = createTargetAnswers(deps, draining);

  const answer = async (session: SessionState, claim: Claim, stage: Stage): Promise<ConfigAnswer> => {
    const { nodeId } = session;
    const generation = deps.generation(nodeId);
    if (generation === undefined) return draining();
    const record = await deps.histories.load(nodeId);
    if (versionClaim(claim.version, generation) === 'absurd') {
      deps.raises.conflict(nodeId, session.sessionId, claim.version);
      // The next apply is recorded even if it is a repeat, because it ends the conflict.
      record.recorded = false;
      return { kind: 'absurd_version' };
    }
    const newest = newestOf(nodeId, record, claim, generation);
    switch (newest.kind) {
      case 'unknown_node':
        return draining();
      case 'withheld':
        session.considered = Math.max(session.considered, generation);
        return withoutNewest(record, claim);
      case 'made':
        break;
      default:
        return unreachable(newest);
    }
    const versus = versionClaim(claim.version, newest.stamp.generation);
    const other = claim.stamp !== undefined && !sameStamp(claim.stamp, newest.stamp);
    if (versus === 'ahead' || (versus === 'equal' && other)) return ahead(session, claim, stage);
    session.considered = Math.max(session.considered, newest.stamp.generation);
    confirm(session, record, claim, newest.stamp);
    return ofTarget(session, record, claim, newest.stamp);
  };

  const newestOf = (
    nodeId: string,
    { history }: ApplyHistoryRecord,
    { stamp }: Claim,
    generation: number,
  ): Newest<undefined> => {
    if (!isRecordedNewest(stamp, history, generation)) return deps.newest.stamp(nodeId);
    deps.checkCompilerVersion();
    return { kind: 'made', stamp, value: undefined };
  };

  const ahead = async (session: SessionState, claim: Claim, stage: Stage): Promise<ConfigAnswer> => {
    // Perhaps only this fold is behind.
    if (stage === 'arrived') return (await deps.atHead()) ? answer(session, claim, 'at_head') : draining();
    if (stage === 'raised') return draining();
    const outcome = await deps.raises.raise(session.nodeId, Number(claim.version));
    switch (outcome.kind) {
      case 'raised':
        return answer(session, claim, 'raised');
      case 'too_soon':
        return { kind: 'raised_too_soon', reported: Number(claim.version), retryAfterMs: outcome.retryAfterMs };
      case 'unavailable':
        return draining();
      default:
        return unreachable(outcome);
    }
  };

  const confirm = (session: SessionState, record: ApplyHistoryRecord, claim: Claim, newest: Stamp): void => {
    if (claim.stamp === undefined) return;
    const pushed = deps.waits(session.nodeId) ? session.unreported : undefined;
    const named = snapshotNamed(claim.stamp, { newest, lastGood: record.history.lastGood, pushed });
    if (named === undefined) return;
    // It has rejected this snapshot in this session, so it still runs the earlier one.
    if (rejectOf(record.history, claim.stamp)?.sessionId === session.sessionId) return;
    // The history changes at once; the answer does not wait for the fact.
    const applied = { stamp: claim.stamp, named, pushed, durationMs: 0, at: deps.clock.monotonic() };
    deps.applyReports
      .applied(record, session, applied)
      .catch(logsWarning(deps.logger, 'a confirmed apply was not recorded', { node_id: record.nodeId }));
    if (named === 'pushed') session.unreported = undefined;
  };

  return async (session, configVersion, checksum) => {
    if (!(await deps.upToDate())) return draining();
    const stamp =
      configVersion === 0n || configVersion > BigInt(limits.fleet.generationMax) || checksum.length === 0
        ? undefined
        : { generation: Number(configVersion), checksum: Buffer.from(checksum).toString('hex') };
    try {
      return await answer(session, { version: configVersion, stamp }, 'arrived');
    } catch (error) {
      const level = error instanceof ServiceError && error.code === 'unavailable' ? 'warn' : 'error';
      deps.logger[level]({ node_id: session.nodeId, error: errorText(error) }, 'a ConfigRequest could not be answered');
      return draining();
    }
  };
}

/** The answers to a checked claim: the target, or "unchanged" if the node has it. */
function createTargetAnswers(deps: AnswerDeps, draining: () => ConfigAnswer) {
  const ofNewest = (
    session: SessionState,
    { retry }: ApplyHistoryRecord,
    claim: Claim,
    newest: Stamp,
  ): ConfigAnswer => {
    if (sameStamp(claim.stamp, newest)) return { kind: 'unchanged', generation: newest.generation };
    if (retry !== undefined) retry.offeredTo = session.sessionId;
    const made = deps.newest.get(session.nodeId);
    if (made.kind !== 'made') return draining();
    session.considered = Math.max(session.considered, made.stamp.generation);
    return { kind: 'snapshot', push: made.value };
  };

  /** The last-good snapshot; undefined when it is missing or unreadable. */
  const ofLastGood = async (record: ApplyHistoryRecord, claim: Claim): Promise<ConfigAnswer | undefined> => {
    const { lastGood } = record.history;
    if (lastGood !== undefined && sameStamp(claim.stamp, lastGood))
      return { kind: 'unchanged', generation: lastGood.generation };
    const push = lastGood === undefined ? undefined : await deps.lastGood.load(record.nodeId, lastGood);
    if (push !== undefined) return { kind: 'snapshot', push };
    // From now on as if there had been none.
    record.history = { ...record.history, lastGood: undefined };
    return undefined;
  };

  /** The answer to a held node; undefined if its bytes are gone and it claims anything but what it applied. */
  const ofHold = async (
    session: SessionState,
    record: ApplyHistoryRecord,
    claim: Claim,
    hold: Exclude<Hold, 'none'>,
  ): Promise<ConfigAnswer | undefined> => {
    const { unreported } = session;
    // A push is never taken back.
    if (unreported !== undefined) {
      const stamp = stampOf(unreported);
      return sameStamp(claim.stamp, stamp)
        ? { kind: 'unchanged', generation: stamp.generation }
        : { kind: 'snapshot', push: unreported };
    }
    const { applied } = record.history;
    if (sameStamp(claim.stamp, applied)) return { kind: 'unchanged', generation: applied?.generation ?? 0 };
    return hold === 'kept' ? ofLastGood(record, claim) : undefined;
  };

  return {
    async ofTarget(
      session: SessionState,
      record: ApplyHistoryRecord,
      claim: Claim,
      newest: Stamp,
    ): Promise<ConfigAnswer> {
      deps.retries.asked(record);
      const hold = holdOf(deps.waits(session.nodeId, record.history.applied?.generation), record.history);
      if (hold !== 'none')
        return (await ofHold(session, record, claim, hold)) ?? ofNewest(session, record, claim, newest);
      const target = targetOf(newest, record.history, tryAgain(record));
      const lastGood = target === 'last_good' ? await ofLastGood(record, claim) : undefined;
      if (lastGood !== undefined) return lastGood;
      // Nothing else can be served, and an unconfirmed snapshot is not retried automatically.
      const isOver = tryAgain(record) !== newest.generation && rejectOf(record.history, newest)?.unconfirmed === true;
      if (isOver && claim.stamp !== undefined) return { kind: 'unchanged', generation: 0 };
      return ofNewest(session, record, claim, newest);
    },
    /** If the newest cannot be made: the last-good snapshot, or else the node keeps what it has. */
    withoutNewest: async (record: ApplyHistoryRecord, claim: Claim): Promise<ConfigAnswer> =>
      (await ofLastGood(record, claim)) ?? { kind: 'unchanged', generation: 0 },
  };
}
