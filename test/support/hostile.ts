/**
 * Hostile wrappers of both ports, which often do everything that the ports allow. What works with them works with a
 * real cluster on a bad day. Deterministic by seed, for a given order of calls. Implements
 * `docs/architecture.md#storage`.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../src/kernel/errors.js';
import type { StoredEvent } from '../../src/kernel/event.js';
import { assertAppendable } from '../../src/storage/bounds.js';
import { eventBytes } from '../../src/storage/event-json.js';
import type { AppendOutcome, EventStore, LogItem } from '../../src/storage/event-store.js';
import type { Collection, Fields, ReadStore } from '../../src/storage/read-store.js';

/** Probabilities from 0 to 1; `lateMs` is the longest delay. */
export interface Hostility {
  readonly writtenButUnknown: number;
  readonly unknownNotWritten: number;
  readonly unavailable: number;
  /** Written after the call has answered `unknown`. */
  readonly writtenLate: number;
  readonly positionMissing: number;
  readonly late: number;
  readonly lateMs: number;
  readonly duplicated: number;
  readonly split: number;
  readonly dropped: number;
  readonly caughtUpRepeated: number;
  readonly writeRepeated: number;
}

export const hostile: Hostility = {
  writtenButUnknown: 0.1,
  unknownNotWritten: 0.1,
  unavailable: 0.1,
  writtenLate: 0.05,
  positionMissing: 0.3,
  late: 0.2,
  lateMs: 4,
  duplicated: 0.2,
  split: 0.5,
  dropped: 0.05,
  caughtUpRepeated: 0.3,
  writeRepeated: 0.2,
};

export interface Dice {
  /** True with this probability. */
  chance(probability: number): boolean;
  /** 0 to `below` - 1. */
  below(below: number): number;
}

/** Mulberry32: the same numbers for the same seed. */
export function createDice(seed: number): Dice {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  return {
    chance: (probability) => next() < probability,
    below: (below) => Math.floor(next() * below),
  };
}

export interface HostileEventStore extends EventStore {
  /** Resolves when no late write is in flight. */
  settled(): Promise<void>;
}

/** Wraps a store. `close` waits for late writes and closes the inner store. */
export function hostileEventStore(inner: EventStore, seed: number, how: Hostility = hostile): HostileEventStore {
  const dice = createDice(seed);
  const running = new Set<Promise<unknown>>();
  const maybeLate = async (): Promise<void> => {
    if (dice.chance(how.late)) await delay(dice.below(how.lateMs + 1));
  };
  const settled = async (): Promise<void> => {
    while (running.size > 0) await Promise.allSettled(running);
  };

  async function append(...call: Parameters<EventStore['append']>): Promise<AppendOutcome> {
    // A caller's fault is always refused.
    assertAppendable(call[0], call[2].map(eventBytes));
    if (dice.chance(how.unavailable)) return { kind: 'unavailable', cause: 'hostile: refused' };
    if (dice.chance(how.unknownNotWritten)) return { kind: 'unknown', cause: 'hostile: not written' };
    if (dice.chance(how.writtenLate)) {
      const later = delay(dice.below(how.lateMs + 1)).then(() => inner.append(...call));
      running.add(later);
      void later.catch(() => undefined).finally(() => running.delete(later));
      return { kind: 'unknown', cause: 'hostile: written later' };
    }
    const lost = dice.chance(how.writtenButUnknown);
    const noPosition = dice.chance(how.positionMissing);
    await maybeLate();
    const outcome = await inner.append(...call);
    if (lost && outcome.kind === 'appended') return { kind: 'unknown', cause: 'hostile: answer lost' };
    if (outcome.kind === 'appended' && noPosition) return { ...outcome, position: undefined };
    return outcome;
  }

  function pieces(events: readonly StoredEvent[]): (readonly StoredEvent[])[] {
    if (events.length < 2 || !dice.chance(how.split)) return [events];
    const at = 1 + dice.below(events.length - 1);
    return [events.slice(0, at), ...pieces(events.slice(at))];
  }

  async function* subscribe(options: Parameters<EventStore['subscribe']>[0]): AsyncGenerator<LogItem, void, void> {
    const drop = (): void => {
      if (!options.signal.aborted && dice.chance(how.dropped))
        throw new ServiceError('unavailable', 'hostile: dropped');
    };
    drop();
    let caughtUp = false;
    for await (const item of inner.subscribe(options)) {
      await maybeLate();
      drop();
      if (item.kind !== 'events') {
        yield item;
        caughtUp ||= item.kind === 'caught_up';
        if (item.kind === 'caught_up' && dice.chance(how.caughtUpRepeated)) yield item;
        continue;
      }
      for (const events of pieces(item.events)) {
        yield { kind: 'events', events };
        if (dice.chance(how.duplicated)) yield { kind: 'events', events };
        // Still true for the log at the start of the subscription, even in the middle of a command.
        if (caughtUp && dice.chance(how.caughtUpRepeated)) yield { kind: 'caught_up' };
        drop();
        await maybeLate();
      }
    }
  }

  return {
    append,
    subscribe,
    read: (stream, options) => inner.read(stream, options),
    setRetention: (stream, retention) => inner.setRetention(stream, retention),
    loadFoldCheckpoint: (name) => inner.loadFoldCheckpoint(name),
    saveFoldCheckpoint: (name, checkpoint) => inner.saveFoldCheckpoint(name, checkpoint),
    starved: () => inner.starved(),
    headPosition: () => inner.headPosition(),
    time: () => inner.time(),
    ping: () => inner.ping(),
    settled,
    async close() {
      await settled();
      await inner.close();
    },
  };
}

export interface HostileReadStore extends ReadStore {
  /** Resolves when no repeated write is in flight. */
  settled(): Promise<void>;
}

/**
 * Wraps a read store: guarded writes, sets and checkpoints are sometimes slow, and guarded writes and checkpoints are
 * sometimes repeated later, out of order. `insert` is never repeated, because its answer is part of the port.
 */
export function hostileReadStore(inner: ReadStore, seed: number, how: Hostility = hostile): HostileReadStore {
  const dice = createDice(seed);
  const running = new Set<Promise<unknown>>();
  const maybeLate = async (): Promise<void> => {
    if (dice.chance(how.late)) await delay(dice.below(how.lateMs + 1));
  };
  const settled = async (): Promise<void> => {
    while (running.size > 0) await Promise.allSettled(running);
  };
  function repeatLater(again: () => Promise<unknown>): void {
    if (!dice.chance(how.writeRepeated)) return;
    const later = delay(dice.below(how.lateMs + 1)).then(again);
    running.add(later);
    void later.catch(() => undefined).finally(() => running.delete(later));
  }

  function wrap<F extends Fields>(collection: Collection<F>): Collection<F> {
    return {
      ...collection,
      async write(writes) {
        await maybeLate();
        const cut = dice.chance(how.split) ? dice.below(writes.length + 1) : writes.length;
        await collection.write(writes.slice(0, cut));
        if (cut < writes.length) await collection.write(writes.slice(cut));
        repeatLater(() => collection.write(writes));
      },
      async set(documents) {
        await maybeLate();
        await collection.set(documents);
      },
    };
  }

  return {
    ...inner,
    async collection<F extends Fields>(spec: Parameters<ReadStore['collection']>[0]) {
      return wrap(await inner.collection<F>(spec));
    },
    async saveCheckpoint(projection, version, point) {
      await maybeLate();
      await inner.saveCheckpoint(projection, version, point);
      repeatLater(() => inner.saveCheckpoint(projection, version, point));
    },
    settled,
    async close() {
      await settled();
      await inner.close();
    },
  };
}
