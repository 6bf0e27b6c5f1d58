/**
 * Backups by the service: when one is due, which instance makes it, which ones are removed, and what all instances know
 * about the last one. `write-archive.ts` writes one, `folder.ts` knows the files. Implements
 * `docs/contract/joining.md#backups`.
 */
import type { LateBackup } from '../domain/matters/kinds.js';
import { startLoop, timedOut, withDeadline } from '../kernel/background.js';
import { isOfFuture, timestamp, type Clock } from '../kernel/clock.js';
import { fromJson } from '../kernel/json.js';
import { limits } from '../kernel/limits.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import type { Collection, Leases, ReadStore } from '../storage/read-store.js';
import { failureOf } from './failure.js';
import { backupAt, backupFolder, outdated, type BackupFile } from './folder.js';
import { tuning } from './tuning.js';
import type { WrittenArchive } from './write-archive.js';

export interface BackupSettings {
  readonly dir: string;
  readonly everyMs: number;
  /** At least 1. */
  readonly keep: number;
}

export interface BackupsDeps {
  /** Undefined: this instance makes none, but knows about those of others. */
  readonly settings: BackupSettings | undefined;
  readonly readStore: Pick<ReadStore, 'collection'> & {
    readonly leases: Pick<Leases, 'acquire' | 'list' | 'purge' | 'release' | 'take'>;
  };
  readonly instanceId: string;
  readonly installationId: string;
  /** `now` is the same on every instance. */
  readonly clock: Clock;
  /** Why the time cannot be trusted: nothing is made or removed meanwhile. */
  clockProblem(): string | undefined;
  /** See `writeArchive`. */
  write(path: string, exportedAt: string, signal: AbortSignal): Promise<WrittenArchive>;
  readonly logger: Logger;
}

export interface LastBackup {
  /** Milliseconds since the epoch; 0 when none was made. */
  readonly at: number;
  readonly bytes: number;
}

export interface Backups {
  /** Undefined where backups are off. */
  last(): LastBackup | undefined;
  /** Undefined if the newest backup is recent, or backups are off, which the death of an instance does not cause. */
  late(): LateBackup | undefined;
}

export interface BackupMaker extends Backups {
  /**
   * Makes a backup if one is due. `startBackups` and tests call it repeatedly. Rejects while the read store is away.
   */
  turn(signal: AbortSignal): Promise<void>;
  /** This instance makes no more backups. */
  close(): Promise<void>;
}

/** The last success. Times are RFC 3339. */
type Shared = {
  /** When the first instance that makes backups started. */
  readonly since: string;
  /** Null until there is one. */
  readonly at: string | null;
  /** Null for a backup that was found in a folder. */
  readonly instance_id: string | null;
  readonly file: string | null;
  readonly bytes: number;
  /** The shortest interval of those that make backups, or did until they died; absent or null once all have stopped. */
  readonly every_ms?: number | null;
};

/** What an instance with the setting tells the others, in a lease of its own. */
type Maker = { readonly every_ms: number; readonly problem: string | null };

const documentId = 'backups';
const makers = 'backup_makers';
/** The lease of the instance that makes one now. */
const turnLease = { kind: 'backup', name: 'backup' } as const;

const takenOver = (): Error => new Error('another instance makes it now');

/** Null when there is none, or the clock has gone back since. */
function ageOf(at: string | null | undefined, now: number): number | null {
  if (at === null || at === undefined || isOfFuture(Date.parse(at), now)) return null;
  return now - Date.parse(at);
}

/** Undefined while no backup is late. */
function lateness(known: readonly Maker[], { at, since, every_ms }: Shared, now: number): LateBackup | undefined {
  const [ageMs, everyMs] = [ageOf(at, now), every_ms ?? Number.POSITIVE_INFINITY];
  const sinceMs = ageMs ?? ageOf(since, now) ?? Number.POSITIVE_INFINITY;
  if (sinceMs <= limits.backups.lateAfter * everyMs) return undefined;
  return { ageMs, reason: known.find(({ problem }) => problem !== null)?.problem ?? null };
}

/** The lease of the instance whose turn it is. @param tell called with each renewal */
function createTurnLease(leases: BackupsDeps['readStore']['leases'], instanceId: string, tell: () => Promise<void>) {
  const hold = (): Promise<boolean> =>
    leases.acquire(turnLease.kind, { name: turnLease.name, holder: instanceId, ttlMs: tuning.leaseMs, data: null });

  /** Keeps the lease while `make` runs, and aborts `make` when the lease is lost. */
  async function holding(signal: AbortSignal, make: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const lost = new AbortController();
    const renewal = startLoop(
      tuning.renewEveryMs,
      async () => {
        await tell();
        if (!(await hold())) lost.abort(takenOver());
      },
      () => undefined,
    );
    try {
      const made = await withDeadline(make(AbortSignal.any([signal, lost.signal])), tuning.makeWithinMs);
      if (made !== timedOut) return;
      const tooLong = new Error(`it took longer than ${tuning.makeWithinMs / 3_600_000} hours`);
      lost.abort(tooLong);
      throw tooLong;
    } finally {
      await renewal.close();
      // It ends by itself.
      await leases.release(turnLease.kind, turnLease.name, instanceId).catch(() => undefined);
    }
  }

  return { hold, holding };
}

/** What all instances know of the last backup, as last looked. @throws ServiceError `unavailable` */
async function openKnowledge({ settings, readStore, clock }: BackupsDeps) {
  const documents: Collection<Shared> = await readStore.collection<Shared>({ name: documentId, version: 1 });
  let shared: Shared | undefined;
  /** The live instances that make backups. */
  let known: readonly Maker[] = [];

  async function note(fields: Shared): Promise<void> {
    await documents.set([{ id: documentId, fields }]);
    shared = fields;
  }

  if (settings !== undefined) {
    const nothing = { since: timestamp(clock.now()), at: null, instance_id: null, file: null, bytes: 0 };
    await documents.insert([{ id: documentId, fields: nothing }]);
    // Removes the leases of killed instances.
    await readStore.leases.purge(makers, 0);
  }
  return {
    last: () => shared && { at: shared.at === null ? 0 : Date.parse(shared.at), bytes: shared.bytes },
    late: () => shared && lateness(known, shared, clock.now()),
    age: (): number => ageOf(shared?.at, clock.now()) ?? Number.POSITIVE_INFINITY,
    async look(): Promise<void> {
      known = (await readStore.leases.list(makers)).map(({ data }) => fromJson<Maker>(data));
      shared = (await documents.get(documentId))?.fields;
    },
    /** Records how often a backup should be made, for when all instances that make them are gone; null once they stopped. */
    async tellInterval(): Promise<void> {
      const every_ms = known.length === 0 ? null : Math.min(...known.map((maker) => maker.every_ms));
      if (shared !== undefined && shared.every_ms !== every_ms) await note({ ...shared, every_ms });
    },
    record({ at, file }: BackupFile, bytes: number, madeBy: string | null): Promise<void> {
      const { since = timestamp(clock.now()), every_ms = null } = shared ?? {};
      return note({ since, at: timestamp(at), instance_id: madeBy, file, bytes, every_ms });
    },
  };
}

/** The caller runs its turns. @internal exported for tests @throws ServiceError `unavailable` */
export async function createBackups(deps: BackupsDeps): Promise<BackupMaker> {
  const { settings, instanceId, installationId, clock, logger } = deps;
  const { leases } = deps.readStore;
  const { last, late, age, look, tellInterval, record } = await openKnowledge(deps);
  /** Whether this instance has looked into its folder. */
  let hasLooked = false;
  /** The last try, if it failed. */
  let failed: { readonly reason: string; readonly retryAt: number } | undefined;

  const tell = async (): Promise<void> => {
    if (settings === undefined) return;
    const data: Maker = { every_ms: settings.everyMs, problem: failed?.reason ?? deps.clockProblem() ?? null };
    await leases.take(makers, { name: instanceId, holder: instanceId, ttlMs: tuning.makerMs, data });
  };

  const { hold: holdTurn, holding } = createTurnLease(leases, instanceId, tell);

  async function makeIfDue({ dir, everyMs, keep }: BackupSettings, signal: AbortSignal): Promise<void> {
    const folder = backupFolder(dir, installationId);
    const there = await folder.open();
    await look();
    await adoptNewest(there, folder.bytesOf);
    hasLooked = true;
    if (there.length > 0 && age() < everyMs) return;
    const [began, now] = [clock.monotonic(), clock.now()];
    const backup = backupAt(installationId, now);
    try {
      const { bytes, events } = await deps.write(folder.draftOf(backup), timestamp(backup.at), signal);
      signal.throwIfAborted();
      if (!(await holdTurn())) throw takenOver();
      await folder.keep(backup);
      await record(backup, bytes, instanceId);
      const took = Math.round(clock.monotonic() - began);
      logger.info({ file: backup.file, bytes, events, duration_ms: took }, 'a backup was made and verified');
    } finally {
      await folder.discard(backup).catch(() => undefined);
    }
    for (const old of outdated(there, { made: backup, keep, now })) {
      await folder.remove(old).catch(logsWarning(logger, 'an old backup could not be removed', { file: old.file }));
    }
  }

  /** A backup may be newer than the read store says: the store was emptied, or the instance killed after the rename. */
  async function adoptNewest(
    there: readonly BackupFile[],
    bytesOf: (one: BackupFile) => Promise<number>,
  ): Promise<void> {
    const [newest] = there.filter(({ at }) => !isOfFuture(at, clock.now())).toSorted((a, b) => b.at - a.at);
    if (newest === undefined || newest.at <= clock.now() - age()) return;
    await record(newest, await bytesOf(newest), null);
  }

  return {
    last,
    late,
    async turn(signal) {
      await tell();
      await look();
      if (settings === undefined) return;
      await tellInterval();
      if (deps.clockProblem() !== undefined) return;
      if ((hasLooked && age() < settings.everyMs) || clock.monotonic() < (failed?.retryAt ?? 0)) return;
      if (!(await holdTurn())) return;
      try {
        await holding(signal, (ends) => makeIfDue(settings, ends));
        failed = undefined;
      } catch (error) {
        if (signal.aborted) return;
        const { reason, error: text } = failureOf(error);
        if (reason !== failed?.reason) logger.error({ reason, error: text }, 'no backup could be made');
        failed = { reason, retryAt: clock.monotonic() + tuning.retryMs };
      }
      await tell();
      await look();
    },
    async close() {
      if (settings === undefined) return;
      await leases.release(makers, instanceId, instanceId);
      await look();
      await tellInterval();
    },
  };
}

/** Makes backups until closed. @throws ServiceError `unavailable` */
export async function startBackups(deps: BackupsDeps): Promise<Backups & { close(): Promise<void> }> {
  const backups = await createBackups(deps);
  const complain = logsWarning(deps.logger, 'this instance does not know of the newest backup now');
  const loop = startLoop(tuning.lookEveryMs, backups.turn, complain);
  return {
    last: backups.last,
    late: backups.late,
    async close() {
      await loop.close();
      await backups.close().catch(complain);
    },
  };
}
