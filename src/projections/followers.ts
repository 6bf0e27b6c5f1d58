/**
 * The joint state of everything that follows the log on this instance: whether it may write, whether it should get
 * traffic, and whether it shows a command yet. Neither starts nor closes the followers. Implements
 * `docs/contract/rest.md#consistency`.
 */
import { chainBreakText } from '../domain/log-chain/links.js';
import { sleep } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { streams } from '../kernel/event.js';
import type { Logger } from '../kernel/logger.js';
import type { LogChain } from '../security/log-chain/log-chain.js';
import type { CommittedAccounts } from './accounts.js';
import type { CommittedFleet } from './fleet/committed-fleet.js';
import { isMismatch, mismatchText } from './fleet/compiler-mismatch.js';
import type { Projections } from './port.js';
import { lastRevision, type EventStore } from '../storage/event-store.js';

export interface FollowerParts {
  readonly eventStore: Pick<EventStore, 'read' | 'headPosition'>;
  readonly committed: Pick<CommittedFleet, 'fleet' | 'state' | 'passed' | 'until'>;
  readonly projections: Pick<Projections, 'status'>;
  readonly accounts: Pick<CommittedAccounts, 'accounts' | 'failure' | 'damage' | 'caughtUp' | 'until'>;
  readonly agentFacts: Pick<CommittedAccounts, 'failure' | 'caughtUp'>;
  readonly logChain: Pick<LogChain, 'broken'>;
  readonly clock: Clock;
}

export interface Followers {
  /** Waits until each has read the log up to its end at the call. @throws ServiceError `unavailable` */
  caughtUp(logger: Logger): Promise<void>;
  /** Where the log was tampered with or damaged, as a sentence without a full stop, or undefined. */
  damage(): string | undefined;
  /** Why nothing may be written, or undefined. */
  readOnlyReason(): string | undefined;
  /**
   * Why this instance should get no traffic, apart from the stores; empty when it should get some.
   * @param readStoreAway the stored read models cannot follow; only their own GETs need them
   */
  notReady(readStoreAway?: boolean): readonly string[];
  /** Log position of the newest command held in memory. */
  position(): number;
  /**
   * True once memory has everything up to the log position, false after `timeoutMs`.
   * @throws ServiceError `unavailable`
   */
  reached(position: number, timeoutMs: number): Promise<boolean>;
}

const progressEveryMs = 5_000;
const pollMs = 20;

/** Polls. @param doing the line to log every five seconds */
async function until(done: () => boolean, logger: Logger, doing: () => Parameters<Logger['info']>): Promise<void> {
  for (let loggedAt = performance.now(); !done();) {
    await sleep(pollMs);
    if (performance.now() - loggedAt < progressEveryMs) continue;
    loggedAt = performance.now();
    logger.info(...doing());
  }
}

export function createFollowers(parts: FollowerParts): Followers {
  const { eventStore, committed, projections, accounts, agentFacts, logChain, clock } = parts;
  const positions = (): readonly [fleet: number, accounts: number] => [
    committed.fleet().position.value,
    accounts.accounts.position.value,
  ];

  function damage(): string | undefined {
    const at = logChain.broken();
    if (at !== undefined) return chainBreakText(at);
    const state = committed.state();
    const found = state.kind === 'broken_log' ? state.reason : accounts.damage();
    return found ?? projections.status().brokenLog ?? undefined;
  }

  function readOnlyReason(): string | undefined {
    // Outdated accounts would keep accepting tokens that a password change has ended.
    const reason = damage() ?? accounts.failure() ?? agentFacts.failure();
    if (reason !== undefined) return `this instance is read-only: ${reason}`;
    const state = committed.state();
    const unknown = state.kind === 'unknown_event' ? state.eventType : projections.status().unknownEvent;
    return unknown === null
      ? undefined
      : `this instance is read-only: it does not know the event ${unknown}, which a newer release wrote`;
  }

  const foldsStopped = (): boolean => ['unknown_event', 'broken_log'].includes(committed.state().kind);

  /**
   * True when the folds in memory have reached a revision of the fleet, or have stopped for good and made the instance
   * read-only. Includes the facts, because an agent admitted earlier could be sent what it has already rejected.
   */
  const memoryHolds = (head: number): boolean =>
    (foldsStopped() || committed.fleet().revision.value >= head) &&
    [accounts, agentFacts].every((fold) => fold.caughtUp() || fold.failure() !== undefined);

  /** The stored read models too; or they, or the log itself, have stopped for good. */
  const storedHold = (): boolean =>
    projections.status().caughtUp ||
    projections.status().unknownEvent !== null ||
    projections.status().brokenLog !== null ||
    committed.state().kind === 'broken_log' ||
    accounts.failure() !== undefined;

  return {
    async caughtUp(logger) {
      const startedAt = performance.now();
      const head = (await lastRevision(eventStore, streams.fleet)) ?? -1;
      await until(
        () => memoryHolds(head),
        logger,
        () => [{ head }, 'reading the event log'],
      );
      logger.info({ ms: Math.round(performance.now() - startedAt), head }, 'the event log is read');
      await until(storedHold, logger, () => {
        const { position, lastError } = projections.status();
        return [{ position, error: lastError }, 'filling the read models'];
      });
    },
    damage,
    readOnlyReason,
    notReady(readStoreAway = false) {
      const reasons: string[] = [];
      const state = committed.state();
      if (state.kind === 'cut_off') reasons.push('the committed fleet is cut off from the log');
      if (state.kind === 'catching_up') reasons.push('the committed fleet is catching up with the log');
      if (isMismatch(state)) reasons.push(mismatchText(state));
      const readOnly = readOnlyReason();
      if (readOnly !== undefined) reasons.push(readOnly);
      if (!readStoreAway && !projections.status().caughtUp)
        reasons.push('the projections are catching up with the log');
      return reasons;
    },
    position: () => Math.max(...positions()),
    async reached(position, timeoutMs) {
      if (positions().every((held) => held >= position)) return true;
      const until = clock.monotonic() + timeoutMs;
      const come = (): boolean => positions().some((held) => held >= position);
      if (!come() && (await eventStore.headPosition()) < position) {
        const waits = [committed.until(come, timeoutMs), accounts.until(come, timeoutMs)];
        if (!(await Promise.race(waits))) return false;
      }
      // A quiet stream never reaches another one's position, so it only has to be folded up to its own head.
      const heads = await Promise.all(
        [streams.fleet, streams.accounts].map(async (stream) => (await lastRevision(eventStore, stream)) ?? -1),
      );
      const [fleetHead = -1, accountsHead = -1] = heads;
      const left = Math.max(0, until - clock.monotonic());
      const held = await Promise.all([
        committed.passed(fleetHead, left),
        accounts.until(() => accounts.accounts.revision.value >= accountsHead, left),
      ]);
      return held.every(Boolean);
    },
  };
}
