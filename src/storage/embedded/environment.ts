/**
 * One LMDB environment: short synchronous reads, and durable transactions that a library thread writes and flushes, so
 * that the event loop never waits for the disk. Knows nothing of what keys and values mean, and leaves every decision
 * to `group-writer.ts`. Implements `docs/architecture.md#storage`.
 *
 * Why asynchronous batches with `overlappingSync: false`: LMDB then flushes data and meta page inside the commit, so a
 * resolved commit is on disk and readers never see data that is not. With overlapping sync, a commit is visible before
 * it is flushed, a failed flush cannot be undone, and the commit resolves no sooner, because it waits for the same two
 * flushes.
 *
 * An environment with mixed commits (`noMetaSync`) flushes the meta page with the next commit, or at the end of a
 * commit that must be durable when it resolves. The data pages are still flushed before the meta page is written, and
 * LMDB reuses no page that the last flushed meta page can reach. So a machine crash undoes at most the newest commit,
 * as a whole, and a process crash undoes nothing.
 *
 * Every commit is conditional on the id of this process, which the transaction itself checks. So no other process can
 * write between an operation's reads and its commit. A commit counts as durable if no other process had started to open
 * the files before it (`ownership.ts`).
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from 'lmdb';
import { errorText } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import { announce, type Ownership } from './ownership.js';
import {
  openHandles,
  ownerKey,
  usedBytes,
  createReads,
  type Handles,
  type Key,
  type ValueKind,
  type Reads,
} from './lmdb.js';
import { commitBytes, createMetaFlush, createSpaceReserve, type SpaceReserve } from './data-file.js';

/** The writes of a commit, in order: per database, keys as latin-1 text and their values. Undefined removes a key. */
export type Changes<Name extends string> = readonly (readonly [
  database: Name,
  entries: Iterable<readonly [key: string, value: Buffer | undefined]>,
])[];

/** The state of a commit when it resolves: `visible` reaches the disk with the next commit at the latest. */
export type Durability = 'flushed' | 'visible';

export type CommitOutcome =
  /** As durable as requested. */
  | { readonly kind: 'durable' }
  | { readonly kind: 'not_written'; readonly cause: string }
  /** It is unknown whether the meta page reached the disk. */
  | { readonly kind: 'unknown'; readonly cause: string };

export interface Environment<Name extends string> extends Reads<Name> {
  /**
   * Writes all changes as one transaction. The caller waits for the outcome before the next commit, and has checked
   * each change with `assertWritable`.
   * @param durability flushed when absent, and always where commits are not mixed
   */
  commit(changes: Changes<Name>, durability?: Durability): Promise<CommitOutcome>;
  /** @throws the library's error when the environment cannot be read; Error when another process has taken it over */
  probe(): void;
  close(): Promise<void>;
}

/** The library rejects with a general error; the real one is in a second promise that settles later. */
async function commitCause(error: unknown): Promise<string> {
  if (typeof error !== 'object' || error === null || !('commitError' in error)) return errorText(error);
  try {
    await error.commitError;
    return errorText(error);
  } catch (cause) {
    return errorText(cause);
  }
}

/** When a write inside a batch throws, the library commits the writes before it, so bad writes are refused up front. */
export function assertWritable(key: string, value: Buffer | undefined): void {
  if (key.length === 0 || key.length > 1900) throw new RangeError(`a storage key has ${key.length} bytes`);
  if (value?.length === 0) throw new RangeError('a stored value has no bytes');
}

export interface EnvironmentOptions<Name extends string> {
  /** The folder; created when missing. */
  readonly path: string;
  /** The databases to open. */
  readonly databases: Readonly<Record<Name, ValueKind>>;
  /** Whether a commit may ask for `visible`. */
  readonly mixed: boolean;
  readonly ownership: Ownership;
  readonly logger: Logger;
}

/** The open files of an environment, which can be reopened after a commit has broken them. */
interface Files<Name extends string> {
  /** Undefined after a failed attempt to reopen them, and when they are closed. */
  current(): Handles<Name> | undefined;
  /** @throws Error when they are not open */
  handleOf(name: Name): Database<unknown, Key>;
  /** @returns whether this process still owns them @throws the library's error when they cannot be read */
  isOwn(): boolean;
  /**
   * After a failed write of the meta page, LMDB refuses everything until the files are reopened.
   * @returns whether they were broken
   */
  reopenIfBroken(): Promise<boolean>;
  /** Why another process may undo a finished commit; undefined when none can. */
  whyUndone(): string | undefined;
  close(): Promise<void>;
}

/** Opens the files and takes them over from their previous process. @throws the library's error */
function openFiles<Name extends string>(
  { path, mixed, ownership, logger }: EnvironmentOptions<Name>,
  kinds: ReadonlyMap<Name, ValueKind>,
  reserve: SpaceReserve,
): Files<Name> {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const announcement = announce(path, ownership.id);
  const opened = openHandles(path, kinds, mixed);
  try {
    opened.owner.putSync(ownerKey, Buffer.from([1]), ownership.id);
  } catch (error) {
    void opened.root.close();
    throw error;
  }
  let handles: Handles<Name> | undefined = opened;

  function isOwn(): boolean {
    if (handles === undefined) throw new Error('the store is closed');
    handles.root.resetReadTxn();
    return handles.owner.doesExist(ownerKey, ownership.id);
  }

  async function close(): Promise<void> {
    const old = handles;
    handles = undefined;
    await old?.root.close();
    await reserve.close();
  }

  return {
    current: () => handles,
    handleOf(name) {
      const handle = handles?.databases.get(name);
      if (handle === undefined) throw new Error('the store is closed');
      return handle;
    },
    isOwn,
    async reopenIfBroken() {
      try {
        isOwn();
        return false;
      } catch (error) {
        logger.error({ path, cause: errorText(error) }, 'the storage environment is broken and is being reopened');
      }
      try {
        await close();
        if (announcement.stands()) handles = openHandles(path, kinds, mixed);
        else ownership.lose();
      } catch (error) {
        logger.error({ path, cause: errorText(error) }, 'the storage environment cannot be reopened yet');
      }
      return true;
    },
    whyUndone() {
      try {
        return announcement.stands() ? ownership.lost() : ownership.lose();
      } catch (error) {
        return errorText(error);
      }
    },
    close,
  };
}

/**
 * Opens the environment and takes it over from its previous process.
 * @throws the library's error when the files cannot be opened
 */
export function openEnvironment<Name extends string>(options: EnvironmentOptions<Name>): Environment<Name> {
  const { path, databases, mixed, ownership, logger } = options;
  const kinds = new Map<Name, ValueKind>(Object.entries(databases) as [Name, ValueKind][]);
  const dataFile = join(path, 'data.mdb');
  const reserve = createSpaceReserve(dataFile);
  const meta = createMetaFlush(dataFile);
  const files = openFiles(options, kinds, reserve);

  /** @throws Error also when another process has taken the files over, because they may have changed */
  const database = (name: Name): Database<unknown, Key> => {
    const lost = ownership.lost();
    if (lost !== undefined) throw new Error(lost);
    return files.handleOf(name);
  };

  let closed = false;
  let failing = false;

  /** Logs the first failure of a series as an error and the rest at debug level: a full disk must not flood the log. */
  function failed(fields: object, message: string): void {
    if (failing) logger.debug({ path, ...fields }, message);
    else logger.error({ path, ...fields }, message);
    failing = true;
  }

  return {
    ...createReads(database),
    async commit(changes, durability = 'flushed') {
      if (closed) return { kind: 'not_written', cause: 'the store is closed' };
      const lost = ownership.lost();
      if (lost !== undefined) return { kind: 'not_written', cause: lost };
      // The environment broke earlier and could not be reopened: try again.
      if (files.current() === undefined) await files.reopenIfBroken();
      const current = files.current();
      if (current === undefined) return { kind: 'not_written', cause: 'the store cannot be opened' };
      try {
        const used = usedBytes(current.root);
        const entries = changes.map(([, entriesOf]) => entriesOf);
        await reserve.ensure(used, commitBytes(entries, used), () => files.whyUndone() === undefined);
      } catch (error) {
        const cause = errorText(error);
        failed({ cause }, 'the storage has no room for a commit');
        return { kind: 'not_written', cause };
      }
      const targets = changes.map(([name, entries]) => [files.handleOf(name), entries] as const);
      let visible = false;
      try {
        const written = await current.owner.ifVersion(ownerKey, ownership.id, () => {
          for (const [target, entries] of targets) {
            for (const [key, value] of entries) {
              if (value === undefined) void target.remove(key);
              else void target.put(key, value);
            }
          }
        });
        if (!written) return { kind: 'not_written', cause: ownership.lose() };
        visible = true;
        if (mixed && durability === 'flushed') await meta.flush();
        const doubt = files.whyUndone();
        if (doubt !== undefined) return { kind: 'unknown', cause: doubt };
        if (failing) logger.info({ path }, 'the storage can be written again');
        failing = false;
        return { kind: 'durable' };
      } catch (error) {
        const cause = await commitCause(error);
        const broken = await files.reopenIfBroken();
        failed({ cause, broken }, 'a storage commit failed');
        return broken || visible ? { kind: 'unknown', cause } : { kind: 'not_written', cause };
      }
    },
    probe() {
      if (!files.isOwn()) throw new Error(ownership.lose());
    },
    async close() {
      if (closed) return;
      closed = true;
      await files.close();
      try {
        if (mixed) await meta.flush();
      } catch (error) {
        logger.warn(
          { path, cause: errorText(error) },
          'the newest writes of a storage environment may not be on the disk',
        );
      }
      await meta.close();
    },
  };
}
