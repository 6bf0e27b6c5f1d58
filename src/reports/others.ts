/**
 * Reads the reports that other instances have written, at most a second later: from each instance, everything after the place
 * that was read last. Nodes with a session here are skipped, because this instance knows them best. Implements
 * `docs/contract/agent-protocol.md#several-instances`.
 */
import { startLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { logsWarning, type Logger } from '../kernel/logger.js';
import type { ReportStore } from './store.js';
import type { StoredBeat } from './stored-entry.js';
import type { Table } from './table.js';
import { tuning } from './tuning.js';

export interface OthersDeps {
  readonly store: Pick<ReportStore, 'writtenBy' | 'beatOf' | 'enter'>;
  readonly table: Table;
  readonly instanceId: string;
  /** @throws ServiceError `unavailable` */
  liveInstances(): Promise<readonly string[]>;
  /** Whether the node's session is at this instance. */
  isOwn(nodeId: string): boolean;
  /** Writes the sign of life of a node of this instance again. */
  rewrite(nodeId: string): void;
  /** The node is no longer in the fleet. */
  isGone(nodeId: string): boolean;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly logger: Logger;
}

/** How long the last writes of a dead instance are still read. */
const readOnMs = 60_000;

interface Instance {
  /** The place read last, and which nodes were read there, because more may be written at that place. */
  place: string;
  nodesThere: ReadonlySet<string>;
  /** When it was last alive. */
  aliveAt: number;
}

export type Others = ReturnType<typeof followOthers>;

export function followOthers(deps: OthersDeps) {
  const { store, table, clock } = deps;
  const instances = new Map<string, Instance>();
  let readAt = clock.monotonic();

  async function take(beats: readonly StoredBeat[]): Promise<void> {
    const news = beats.filter(({ id }) => !deps.isOwn(id));
    await store.enter(news);
    for (const { id, fields } of news) {
      // Its session may have moved here meanwhile.
      if (deps.isOwn(id)) continue;
      const { presence: facts, ttl_ms } = fields;
      table.entry(id).presence = facts === null ? undefined : { facts, until: clock.monotonic() + ttl_ms };
      table.notify(id);
    }
  }

  async function readNew(name: string, instance: Instance): Promise<void> {
    for (let more = true; more;) {
      const { place, nodesThere } = instance;
      const beats = await store.writtenBy(name, place);
      const news = beats.filter(({ id, fields }) => fields.place !== place || !nodesThere.has(id));
      await take(news);
      // The instance that had the session before may have written its end over what was written here.
      for (const { id, fields } of news) if (fields.presence === null && deps.isOwn(id)) deps.rewrite(id);
      instance.place = beats.at(-1)?.fields.place ?? place;
      const there = beats.filter(({ fields }) => fields.place === instance.place);
      instance.nodesThere = new Set(there.map(({ id }) => id));
      more = instance.place !== place;
    }
  }

  async function read(): Promise<void> {
    const now = clock.monotonic();
    for (const name of await deps.liveInstances()) {
      if (name === deps.instanceId) continue;
      const known = instances.get(name);
      if (known === undefined) instances.set(name, { place: '', nodesThere: new Set(), aliveAt: now });
      else known.aliveAt = now;
    }
    for (const [name, instance] of instances) {
      await readNew(name, instance);
      if (now - instance.aliveAt > readOnMs) instances.delete(name);
    }
    readAt = now;
    for (const [id, entry] of table.entries()) {
      if (entry.presence !== undefined && entry.presence.until < now) {
        entry.presence = undefined;
        table.notify(id);
      }
      // It may have been read while it was deleted.
      if (entry.presence === undefined && deps.isGone(id)) table.forget(id);
    }
  }

  const loop = startLoop(
    tuning.othersEveryMs,
    read,
    logsWarning(deps.logger, 'the reports at other instances could not be read'),
  );
  return {
    /** When everything was last read, monotonic milliseconds. */
    readAt: (): number => readAt,
    /** The stored beat of a node; undefined also while the store is away. */
    stored: (nodeId: string): Promise<StoredBeat | undefined> => store.beatOf(nodeId).catch(() => undefined),
    /** Enters beats that were just read, with presence. @throws ServiceError `unavailable` */
    take,
    /** Reads once, as the loop does. @throws ServiceError `unavailable` @internal exported for tests */
    read,
    close: loop.close,
  };
}
