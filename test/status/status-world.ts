/**
 * A fleet of statuses that a test sets, a log in memory, a lease by a clock that the test moves, and instances that write
 * statuses and can be killed, frozen or left behind by the log.
 */
import { randomUUID } from 'node:crypto';
import type { Observed } from '../../src/domain/status/decide.js';
import { statusChanged, type StatusFact } from '../../src/domain/status/facts.js';
import { keyText, type StatusKey } from '../../src/domain/status/status.js';
import { isForeign, streams, type ProposedEvent, type RecordedEvent } from '../../src/kernel/event.js';
import { limits } from '../../src/kernel/limits.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openStatusLedger } from '../../src/status/ledger.js';
import type { StatusSource } from '../../src/status/observer.js';
import { createStatusWriter } from '../../src/status/writer.js';
import { wholeStream, type EventStore } from '../../src/storage/event-store.js';
import type { Leases } from '../../src/storage/read-store.js';
import { createManualClock } from '../support/manual-clock.js';
import { storesInMemory } from '../support/stores-in-memory.js';

export interface RecordedFact {
  readonly at: number;
  readonly fact: StatusFact;
}

/** What goes wrong with an append. */
export type Mishap = 'none' | 'lost answer' | 'not written' | 'conflict' | 'refused' | 'unavailable';

export interface Instance {
  turn(): Promise<void>;
  /** Reads what the log has. */
  follow(): Promise<void>;
  /** Whether it reads the log by itself. */
  lagging: boolean;
  /** Why it may not write now. */
  readOnly: string | undefined;
  close(): Promise<void>;
}

/** How long an agent that has gone has to come back. */
export const graceMs = 30_000;

export type World = Awaited<ReturnType<typeof createWorld>>;

export async function createWorld() {
  const { eventStore } = storesInMemory();
  const clock = createManualClock(Date.UTC(2026, 0, 1));
  const now = new Map<string, { readonly key: StatusKey; readonly status: string; readonly since: number }>();
  const listeners = new Set<(key: StatusKey) => void>();
  const holders = new Map<string, { readonly holder: string; readonly until: number }>();
  const appended: number[] = [];
  let mishap: () => Mishap = () => 'none';
  let gate: (() => Promise<void>) | undefined;

  const leases: Pick<Leases, 'acquire' | 'release'> = {
    async acquire(_kind, { name, holder, ttlMs }) {
      const held = holders.get(name);
      if (held !== undefined && held.holder !== holder && held.until > clock.monotonic()) return false;
      holders.set(name, { holder, until: clock.monotonic() + ttlMs });
      return true;
    },
    async release(_kind, name, holder) {
      if (holders.get(name)?.holder === holder) holders.delete(name);
    },
  };
  const source: StatusSource = {
    keys: () => Array.from(now.values(), ({ key }) => key),
    observe(key, from): Observed | undefined {
      const found = now.get(keyText(key));
      if (found === undefined) return undefined;
      const { status, since } = found;
      const dueAt = status === 'offline' ? Math.max(since, from) + graceMs : since + limits.status.standsMs;
      return { resource: { ...key, name: key.id }, status, reason: null, since, dueAt };
    },
    isOlder: ({ id }) => !id.startsWith('new'),
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const append: EventStore['append'] = async (stream, expected, events) => {
    await gate?.();
    appended.push(events.length);
    switch (mishap()) {
      case 'conflict':
        await eventStore.append(stream, 'any', [strangersFact(events[0])]);
        return eventStore.append(stream, expected, events);
      case 'refused':
        return { kind: 'refused', what: 'stream', cause: 'no permission' };
      case 'unavailable':
        return { kind: 'unavailable', cause: 'no connection' };
      case 'not written':
        return { kind: 'unknown', cause: 'a test' };
      case 'lost answer':
        await eventStore.append(stream, expected, events);
        return { kind: 'unknown', cause: 'a test' };
      case 'none':
        return eventStore.append(stream, expected, events);
    }
  };

  return {
    clock,
    eventStore,
    /** @param isNoticed false: it went and came back between two looks of whoever tells the writer of changes */
    set(key: StatusKey, status: string, isNoticed = true): void {
      const before = now.get(keyText(key));
      if (before?.status === status) return;
      now.set(keyText(key), { key, status, since: clock.now() });
      if (isNoticed) for (const listener of listeners) listener(key);
    },
    statuses: () => [...now.values()],
    /** The resource is deleted. */
    unset: (key: StatusKey): void => void now.delete(keyText(key)),
    /** The number of facts of each append. */
    appended,
    onAppend: (next: () => Mishap): void => void (mishap = next),
    /** Holds the next append until `released`. @returns when it waits */
    holdAppend: (released: Promise<void>): Promise<void> =>
      new Promise((waits) => {
        gate = () => {
          gate = undefined;
          waits();
          return released;
        };
      }),
    async start(): Promise<Instance> {
      const ledger = await openStatusLedger({ eventStore, sealing: { seal: () => '' }, logger: silentLogger });
      const follow = async (): Promise<void> => {
        const from = ledger.revision(streams.status) + 1;
        const options = { direction: 'forward', from, maxCount: Number.MAX_SAFE_INTEGER } as const;
        for await (const event of eventStore.read(streams.status, options)) {
          if (!isForeign(event)) ledger.apply([{ stream: event.stream, events: [event] }]);
        }
      };
      await follow();
      const writer = createStatusWriter({
        eventStore: { append, read: eventStore.read },
        leases,
        ledger: {
          ...ledger,
          async holds(revision) {
            if (!instance.lagging) await follow();
            return ledger.revision(streams.status) >= revision;
          },
        },
        source,
        instanceId: randomUUID(),
        ids: { next: randomUUID },
        clock,
        graceMs: () => graceMs,
        readOnly: () => instance.readOnly,
        logger: silentLogger,
      });
      const instance: Instance = { lagging: false, readOnly: undefined, follow, ...writer };
      return instance;
    },
    async facts(): Promise<readonly RecordedFact[]> {
      const facts: RecordedFact[] = [];
      for await (const event of wholeStream(eventStore, streams.status)) {
        if (!isForeign(event)) facts.push({ at: Date.parse(event.metadata.occurred_at), fact: factOf(event) });
      }
      return facts;
    },
  };
}

const factOf = (event: RecordedEvent): StatusFact => statusChanged(event).data;

/** An event without metadata, which only another program writes. */
function strangersFact(like: ProposedEvent | undefined): ProposedEvent {
  return { ...like, id: randomUUID(), type: 'Strange', data: {}, metadata: null } as unknown as ProposedEvent;
}
