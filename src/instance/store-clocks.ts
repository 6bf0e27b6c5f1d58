/**
 * Compares the clock of this instance with its stores' clocks: at the start, every minute, and more often while they
 * are apart. In between, the monotonic clock extends the last comparison, so that a jump shows at once. An instance
 * whose clock is too far off must not write. A store without a clock can at most have events of the future, recorded
 * while this clock was ahead: commands continue, and nothing is deleted by age. Implements
 * `docs/contract/domain.md#commands-and-events`.
 */
import { startLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import { logsError, type Logger } from '../kernel/logger.js';
import type { EventStore, StoreTime } from '../storage/event-store.js';
import type { ReadStore } from '../storage/read-store.js';

const { apartMs, compareEveryMs } = limits.clocks;
/** While clocks differ or have not been compared yet. */
const compareAgainMs = 5_000;

export interface StoreClocks {
  /** One sentence per store whose clock is too far from this instance's; judged now. */
  problems(): readonly string[];
  /** How many seconds this instance's clock is ahead of each store's, negative when behind; known ones only. */
  differences(): ReadonlyMap<string, number>;
  /**
   * The time of the slowest clock, in milliseconds since the epoch. Anything a day old by it is a day old by every
   * clock, even if this instance's has jumped ahead.
   */
  now(): number;
  /**
   * A clock shared by all instances on these stores, for times that are compared across instances: the read store's;
   * else the event store's; else, with embedded stores, this instance's own.
   */
  readonly shared: Clock;
  /**
   * The time that all deletions by age use, in milliseconds since the epoch: now by the slowest of all clocks,
   * including the log's own measure of time, but never later than the log's newest event. Data removed too early may be
   * lost, so a clock that is wrong for an hour must not make anything look older.
   * @param newest the time of the newest log event that the caller has read; undefined before the first
   * @returns undefined while nothing may be deleted: clocks disagree, or one has not been read yet
   */
  deletionTime(newest: number | undefined): number | undefined;
  close(): Promise<void>;
}

export interface StoreClockOptions {
  readonly stores: {
    readonly 'event store': Pick<EventStore, 'time'>;
    readonly 'read store': Pick<ReadStore, 'time'>;
  };
  readonly clock: Clock;
  readonly logger: Logger;
  /** How often it checks whether a comparison is due, in milliseconds. */
  readonly lookEveryMs?: number;
}

interface Compared {
  readonly time: StoreTime;
  /** By the monotonic clock. */
  readonly since: number;
}

function apartText(store: string, aheadMs: number): string {
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  const direction = aheadMs > 0 ? 'ahead of' : 'behind';
  return `the clock of this instance is ${seconds} s ${direction} the ${store}'s; expected at most ${apartMs / 1000} s`;
}

/** A store's time; undefined if it does not tell it, null if it cannot be read now. */
function timeOf(
  store: string,
  { time }: Pick<EventStore, 'time'>,
  logger: Logger,
): Promise<StoreTime | null | undefined> {
  return time().catch((error: unknown) => {
    logger.debug({ store, error: errorText(error) }, 'the clock of a store cannot be read now');
    return null;
  });
}

/** Resolves after the first comparison, which may have found a store out of reach. */
export async function watchStoreClocks(options: StoreClockOptions): Promise<StoreClocks> {
  const { clock, logger, lookEveryMs = 1_000 } = options;
  const stores = Object.entries(options.stores);
  const compared = new Map<string, Compared>();
  /** If no store has a clock, time is extended from here. */
  const began = { wall: clock.now(), since: clock.monotonic() };
  let comparedAt = Number.NEGATIVE_INFINITY;
  /** Stores that were asked but do not report their time. */
  const silent = new Set<string>();
  /** Problems logged last. */
  let logged = '';
  let hadFuture = false;

  const clockOf = ({ time, since }: Compared): number => time.at + clock.monotonic() - since;

  function aheadMs(entry: Compared): number {
    return entry.time.kind === 'clock' ? clock.now() - clockOf(entry) : Math.min(0, clock.now() - entry.time.at);
  }

  // A loop, because every command calls it.
  function problems(): readonly string[] {
    const found: string[] = [];
    for (const [name, entry] of compared) {
      const ahead = aheadMs(entry);
      if (entry.time.kind === 'clock' && Math.abs(ahead) > apartMs) found.push(apartText(name, ahead));
    }
    return found;
  }

  /** Whether events were recorded by a clock that was ahead of this one. */
  const hasFuture = (): boolean =>
    [...compared.values()].some((entry) => entry.time.kind === 'not_before' && aheadMs(entry) < -apartMs);

  async function compare(name: string, store: Pick<EventStore, 'time'>): Promise<void> {
    const time = await timeOf(name, store, logger);
    if (time === undefined) silent.add(name);
    if (time === undefined || time === null) return;
    const before = compared.get(name)?.time;
    // A recorded time stays recorded: a later event with an earlier time does not make a clock right.
    const kept = time.kind === 'not_before' ? { ...time, at: Math.max(time.at, before?.at ?? time.at) } : time;
    compared.set(name, { time: kept, since: clock.monotonic() });
  }

  function tell(): void {
    const isFuture = hasFuture();
    if (isFuture && !hadFuture) {
      const message = 'the log has events of the future: this clock was ahead, or is behind now. Commands go on';
      logger.warn({ seconds_behind: Math.round(-Math.min(...differences().values())) }, message);
    }
    hadFuture = isFuture;
    const found = problems().join(', ');
    const anew = (found === '') !== (logged === '');
    logged = found;
    if (!anew) return;
    if (found === '') logger.info({}, 'the clocks of this instance and its stores agree again');
    else logger.error({ problems: found }, 'the clock of this instance or of a store is wrong: no commands');
  }

  async function look(): Promise<void> {
    tell();
    const everyMs = notRead() || logged !== '' ? compareAgainMs : compareEveryMs;
    if (clock.monotonic() - comparedAt < everyMs) return;
    comparedAt = clock.monotonic();
    await Promise.all(stores.map(([name, store]) => compare(name, store)));
    tell();
  }

  /** The slowest of all clocks, whether they agree or not. */
  function slowest(): number {
    const clocks = [...compared.values()].filter(({ time }) => time.kind === 'clock').map(clockOf);
    const carried = clocks.length === 0 ? [began.wall + clock.monotonic() - began.since] : clocks;
    return Math.min(clock.now(), ...carried);
  }

  function sharedNow(): number {
    const entries = [compared.get('read store'), compared.get('event store')];
    const entry = entries.find((one) => one?.time.kind === 'clock');
    return entry === undefined ? clock.now() : clockOf(entry);
  }

  const differences = (): ReadonlyMap<string, number> =>
    new Map([...compared].map(([name, entry]) => [name, aheadMs(entry) / 1000]));

  const notRead = (): boolean => stores.some(([name]) => !compared.has(name) && !silent.has(name));

  await look();
  const loop = startLoop(lookEveryMs, look, logsError(logger, 'the clocks could not be compared'));
  return {
    problems,
    differences,
    now: slowest,
    shared: { now: sharedNow, monotonic: clock.monotonic },
    deletionTime(newest) {
      if (newest === undefined || notRead() || hasFuture() || problems().length > 0) return undefined;
      const measured = [...compared.values()].flatMap(({ time }) => (time.kind === 'not_before' ? time.measured : []));
      return Math.min(slowest(), newest, ...measured);
    },
    close: () => loop.close(),
  };
}
