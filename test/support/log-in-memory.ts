/**
 * A log in memory, as far as those who append to it use one: atomic appends behind an expected revision, repeats by their
 * ids, and reads. Nothing is durable, expires or is subscribed to; for all that there are the temporary stores.
 */
import type { ProposedEvent, RecordedEvent } from '../../src/kernel/event.js';
import { assertAppendable } from '../../src/storage/append-limits.js';
import { eventBytes } from '../../src/storage/event-json.js';
import type { EventStore } from '../../src/storage/event-store.js';
import type { TemporaryStores } from './temporary-stores.js';

export function logInMemory(): EventStore {
  const streams = new Map<string, RecordedEvent[]>();
  let position = 0;
  const answer = (stream: readonly RecordedEvent[]) => {
    const last = stream.at(-1);
    return { kind: 'appended', revision: last?.revision ?? -1, position: last?.position } as const;
  };
  const log: Pick<EventStore, 'append' | 'read' | 'headPosition' | 'time' | 'close'> = {
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
      const recorded = (JSON.parse(JSON.stringify(events)) as ProposedEvent[]).map((event, index): RecordedEvent => {
        position += 10;
        return { ...event, stream, revision: behind + index, position };
      });
      streams.set(stream, [...held, ...recorded]);
      return answer(recorded);
    },
    async *read(stream, { direction, from, maxCount }) {
      const held = streams.get(stream) ?? [];
      if (direction === 'backward')
        yield* held
          .slice(0, from === 'end' ? held.length : Number(from) + 1)
          .toReversed()
          .slice(0, maxCount);
      else yield* held.slice(from === 'start' ? 0 : Number(from)).slice(0, maxCount);
    },
    headPosition: async () => position,
    time: async () => undefined,
    close: async () => undefined,
  };
  return log as EventStore;
}

/** Stores for fixtures that only write to the log: there are no read models. */
export function logAlone(): TemporaryStores {
  const stores = {
    eventStore: logInMemory(),
    reopened: async () => stores,
    close: async () => undefined,
  } as unknown as TemporaryStores;
  return stores;
}
