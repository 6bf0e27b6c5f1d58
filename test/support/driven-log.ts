/** A log whose subscriptions deliver exactly what a test gives them, when it gives it. */
import type { RecordedCommand, StoredEvent } from '../../src/kernel/event.js';
import type { EventStore, FoldCheckpoint, LogItem, SubscribeOptions } from '../../src/storage/event-store.js';

export const delivered = (...commands: readonly RecordedCommand[]): LogItem => ({
  kind: 'events',
  events: commands.flatMap(({ events }) => events),
});
export const caughtUp: LogItem = { kind: 'caught_up' };

export interface DrivenLog {
  readonly store: EventStore;
  /** Every subscription so far. */
  readonly subscriptions: SubscribeOptions[];
  /** Every fold checkpoint that was saved. */
  readonly saved: FoldCheckpoint[];
  /** For the present subscription, or the next one; an error drops it. */
  give(...items: readonly (LogItem | Error)[]): void;
}

export function drivenLog(): DrivenLog {
  const subscriptions: SubscribeOptions[] = [];
  const saved: FoldCheckpoint[] = [];
  const waiting: (LogItem | Error)[] = [];
  const held: StoredEvent[] = [];
  let wake = (): void => undefined;
  const store: Partial<EventStore> = {
    loadFoldCheckpoint: async () => saved.at(-1),
    saveFoldCheckpoint: async (_name, checkpoint) => void saved.push(checkpoint),
    // What was delivered can be read.
    async *read(stream, { from }) {
      yield* held.filter((event) => event.stream === stream && event.revision >= Number(from));
    },
    async *subscribe(options) {
      subscriptions.push(options);
      options.signal.addEventListener('abort', () => wake());
      while (!options.signal.aborted) {
        const item = waiting.shift();
        if (item instanceof Error) throw item;
        if (item === undefined) await new Promise<void>((resolve) => (wake = resolve));
        else {
          if (item.kind === 'events') held.push(...item.events);
          yield item;
        }
      }
    },
  };
  return {
    store: store as EventStore,
    subscriptions,
    saved,
    give(...items) {
      waiting.push(...items);
      wake();
    },
  };
}
