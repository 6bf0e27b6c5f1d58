/**
 * A log and a read store in memory, for tests of what stands above the two ports and asks nothing of a store but its
 * answers. They keep the contracts of both ports (`test/storage/stores-in-memory.test.ts`), but nothing is durable and
 * nothing goes wrong: tests of that use the temporary stores.
 */
import { isForeign, type ProposedEvent, type StoredEvent } from '../../src/kernel/event.js';
import { storedEvent } from '../../src/storage/broken-log.js';
import { assertAppendable, bounds } from '../../src/storage/bounds.js';
import { compareText } from '../../src/kernel/compare-text.js';
import { assertQuery, placeIn } from '../../src/storage/group-index.js';
import { eventBytes } from '../../src/storage/event-json.js';
import {
  isAfter,
  type EventStore,
  type FoldCheckpoint,
  type Retention,
  type SubscribeOptions,
} from '../../src/storage/event-store.js';
import type {
  Checkpoint,
  Collection,
  Fields,
  IndexSpec,
  Lease,
  LeaseClaim,
  Leases,
  ReadStore,
  StoredDocument,
} from '../../src/storage/read-store.js';
import { naiveQuery } from '../storage/contract/query-oracle.js';
import type { TemporaryStores } from './temporary-stores.js';

/** The first events that share an item of a subscription. */
function itemOf(
  events: readonly StoredEvent[],
  { events: most, bytes: mostBytes }: NonNullable<SubscribeOptions['ahead']>,
): readonly StoredEvent[] {
  let bytes = 0;
  const over = events.slice(0, most).findIndex((event) => {
    bytes += isForeign(event) ? 0 : eventBytes(event);
    return bytes > mostBytes;
  });
  return events.slice(0, over === -1 ? most : Math.max(1, over));
}

function logInMemory(): EventStore {
  const streams = new Map<string, StoredEvent[]>();
  const retentions = new Map<string, Retention>();
  const writtenAt = new Map<StoredEvent, number>();
  const log: StoredEvent[] = [];
  const checkpoints = new Map<string, FoldCheckpoint>();
  const waiting = new Set<() => void>();
  const wake = (): void => {
    for (const one of waiting) one();
    waiting.clear();
  };
  const answer = (stream: readonly StoredEvent[]) => {
    const last = stream.at(-1);
    return { kind: 'appended', revision: last?.revision ?? -1, position: last?.position } as const;
  };
  const retained = (stream: string): readonly StoredEvent[] => {
    const { maxCount = Number.POSITIVE_INFINITY, maxAgeSeconds = Number.POSITIVE_INFINITY } =
      retentions.get(stream) ?? {};
    const since = performance.now() - 1000 * maxAgeSeconds;
    return (streams.get(stream) ?? []).slice(-maxCount).filter((event) => (writtenAt.get(event) ?? 0) >= since);
  };
  return {
    async append(stream, expected, events) {
      assertAppendable(stream, events.map(eventBytes));
      const held = streams.get(stream) ?? [];
      const behind = expected === 'any' ? held.length : expected === 'no_stream' ? 0 : expected + 1;
      if (behind !== held.length) {
        const there = held.slice(behind, behind + events.length);
        if (there.length === events.length && there.every(({ id }, index) => id === events[index]?.id)) {
          return answer(there);
        }
        return { kind: 'conflict', actual: held.length === 0 ? 'no_stream' : held.length - 1 };
      }
      // As a store gives them back: other objects, with what JSON keeps.
      const recorded = (JSON.parse(JSON.stringify(events)) as ProposedEvent[]).map((event, index) =>
        storedEvent({
          ...event,
          stream,
          revision: behind + index,
          position: 10 * (log.length + index + 1),
        }),
      );
      streams.set(stream, held);
      held.push(...recorded);
      log.push(...recorded);
      for (const event of recorded) writtenAt.set(event, performance.now());
      wake();
      return answer(recorded);
    },
    async *read(stream, { direction, from, maxCount }) {
      const held = retained(stream);
      const wanted =
        direction === 'forward'
          ? held.filter(({ revision }) => from === 'start' || revision >= Number(from))
          : held.filter(({ revision }) => from === 'end' || revision <= Number(from)).toReversed();
      yield* wanted.slice(0, maxCount);
    },
    async *subscribe({
      streams: wanted,
      after,
      signal,
      ahead = { events: bounds.itemEvents, bytes: bounds.itemBytes },
    }) {
      let next = after === 'start' ? 0 : log.filter(({ position }) => position <= after.commit).length;
      signal.addEventListener('abort', wake);
      let told = false;
      while (!signal.aborted) {
        const item = itemOf(log.slice(next, next + ahead.events), ahead);
        next += item.length;
        const events = item.filter(({ stream }) => wanted.includes(stream));
        if (events.length > 0) yield { kind: 'events', events };
        if (next < log.length || signal.aborted) continue;
        if (!told) yield { kind: 'caught_up' };
        told = true;
        if (next === log.length && !signal.aborted) await new Promise<void>((resolve) => waiting.add(resolve));
      }
    },
    async setRetention(stream, retention) {
      retentions.set(stream, { ...retentions.get(stream), ...retention });
    },
    loadFoldCheckpoint: async (name) => checkpoints.get(name),
    saveFoldCheckpoint: async (name, checkpoint) => void checkpoints.set(name, checkpoint),
    starved: () => 0,
    headPosition: async () => log.at(-1)?.position ?? 0,
    time: async () => ({ kind: 'clock', at: Date.now() }),
    ping: async () => undefined,
    close: async () => undefined,
  };
}

function collectionInMemory(spec: Collection['spec']): Collection {
  const held = new Map<string, StoredDocument>();
  const get = (id: string): StoredDocument | undefined => held.get(id);
  const live = (): StoredDocument[] => [...held.values()];
  return {
    spec,
    get: async (id) => get(id),
    getMany: async (ids) => ids.flatMap((id) => get(id) ?? []),
    async find(query) {
      assertQuery(spec, query);
      return naiveQuery(live(), spec.index as IndexSpec, query).ids.flatMap((id) => get(id) ?? []);
    },
    async count(range) {
      assertQuery(spec, range);
      return naiveQuery(live(), spec.index as IndexSpec, { ...range, direction: 'asc', limit: 1 }).total;
    },
    list: async (after = '', limit) =>
      live()
        .filter(({ id }) => id > after)
        .sort((a, b) => compareText(a.id, b.id))
        .slice(0, limit)
        .flatMap(({ id }) => get(id) ?? []),
    async write(documents) {
      for (const document of documents) {
        if (document.position <= (get(document.id)?.position ?? -1)) continue;
        placeIn(spec.index, document.fields);
        held.set(document.id, document);
      }
    },
    async set(documents) {
      for (const { id, fields } of documents) held.set(id, { id, position: 0, fields });
    },
    async insert(documents) {
      const missing = documents.filter(({ id }) => get(id) === undefined);
      for (const { id, fields } of missing) held.set(id, { id, position: 0, fields });
      return missing.map(({ id }) => id);
    },
    async remove(ids) {
      for (const id of ids) held.delete(id);
    },
  };
}

function leasesInMemory(): Leases {
  const held = new Map<string, LeaseClaim & { readonly until: number }>();
  const keyOf = (kind: string, name: string): string => `${kind}/${name}`;
  const put = (kind: string, claim: LeaseClaim): void =>
    void held.set(keyOf(kind, claim.name), { ...claim, until: performance.now() + claim.ttlMs });
  const get = (kind: string, name: string): Lease | undefined => {
    const found = held.get(keyOf(kind, name));
    const remainingMs = (found?.until ?? 0) - performance.now();
    return found === undefined || remainingMs <= 0
      ? undefined
      : { kind, name, holder: found.holder, remainingMs, data: found.data };
  };
  return {
    take: async (kind, claim) => put(kind, claim),
    async acquire(kind, claim) {
      const free = (get(kind, claim.name)?.holder ?? claim.holder) === claim.holder;
      if (free) put(kind, claim);
      return free;
    },
    async renew(kind, claims) {
      const lost = claims.filter(({ name, holder }) => held.get(keyOf(kind, name))?.holder !== holder);
      for (const claim of claims) if (!lost.includes(claim)) put(kind, claim);
      return lost.map(({ name }) => name);
    },
    async release(kind, name, holder) {
      if (held.get(keyOf(kind, name))?.holder === holder) held.delete(keyOf(kind, name));
    },
    list: async (kind) =>
      [...held.keys()].flatMap((key) =>
        key.startsWith(`${kind}/`) ? (get(kind, key.slice(kind.length + 1)) ?? []) : [],
      ),
    async purge(kind) {
      for (const [key, { name }] of held)
        if (key === keyOf(kind, name) && get(kind, name) === undefined) held.delete(key);
    },
  };
}

function readStoreInMemory(): ReadStore {
  const collections = new Map<string, Collection>();
  const checkpoints = new Map<string, Checkpoint>();
  const versions = new Map<string, number>();
  return {
    async collection<F extends Fields>(spec: Collection['spec']) {
      const name = `${spec.name}@${spec.version}`;
      const collection = collections.get(name) ?? collectionInMemory(spec);
      collections.set(name, collection);
      return collection as unknown as Collection<F>;
    },
    async drop(name, version) {
      collections.delete(`${name}@${version}`);
    },
    loadCheckpoint: async (projection, version) => checkpoints.get(`${projection}@${version}`),
    async saveCheckpoint(projection, version, checkpoint) {
      const stored = checkpoints.get(`${projection}@${version}`);
      if (stored === undefined || isAfter(checkpoint, stored)) checkpoints.set(`${projection}@${version}`, checkpoint);
    },
    async deleteCheckpoint(projection, version) {
      checkpoints.delete(`${projection}@${version}`);
    },
    activeVersion: async (projection) => versions.get(projection),
    activate: async (projection, version) => void versions.set(projection, version),
    leases: leasesInMemory(),
    time: async () => undefined,
    ping: async () => undefined,
    close: async () => undefined,
  };
}

/** Both stores; opened again they hold what they held. */
export function storesInMemory(): TemporaryStores {
  const stores = {
    eventStore: logInMemory(),
    readStore: readStoreInMemory(),
    folder: 'none',
    reopened: async () => stores,
    close: async () => undefined,
  } as unknown as TemporaryStores;
  return stores;
}
