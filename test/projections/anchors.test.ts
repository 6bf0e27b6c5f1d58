/** Anchors: the events by which the read models know the log that they are from. */
import { describe, expect, it } from 'vitest';
import type { RecordedEvent } from '../../src/kernel/event.js';
import { anchored, AnotherLogError, createAnchors, differenceFrom } from '../../src/projections/engine/another-log.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { commandOf, eventOf } from '../support/recorded-events.js';

const facts = 'svc-agents-03';

describe('anchors', () => {
  const anchor = (position: number, stream = 'svc-fleet') => ({
    stream,
    revision: position - 1,
    id: `id-${stream}-${position}`,
  });

  it('are the last event and the last one that never expires', () => {
    const anchors = createAnchors();
    expect(anchors.current()).toEqual([]);
    anchors.note([commandOf(eventOf(1, 'E', facts))]);
    expect(anchors.current()).toEqual([anchor(1, facts)]);
    anchors.note([commandOf(eventOf(2), eventOf(3)), commandOf(eventOf(4, 'E', facts))]);
    expect(anchors.current()).toEqual([anchor(3), anchor(4, facts)]);
    anchors.note([commandOf(eventOf(5))]);
    expect(anchors.current()).toEqual([anchor(5)]);
    const later = createAnchors([anchor(3), anchor(4, facts)]);
    expect(later.current()).toEqual([anchor(3), anchor(4, facts)]);
    later.note([commandOf(eventOf(6, 'E', facts))]);
    expect(later.current()).toEqual([anchor(3), anchor(6, facts)]);
  });

  /** A log of these events, by stream and revision. */
  const logOf = (...events: RecordedEvent[]): EventStore =>
    ({
      async *read(stream: string, { from }: { readonly from: number }) {
        const found = events.find((event) => event.stream === stream && event.revision >= from);
        if (found !== undefined) yield found;
      },
      async *subscribe() {
        yield { kind: 'caught_up' };
      },
    }) as unknown as EventStore;

  it('are found in the log that they are from, and differ from another one', async () => {
    expect(
      await differenceFrom(logOf(eventOf(3), eventOf(4, 'E', facts)), [anchor(3), anchor(4, facts)]),
    ).toBeUndefined();
    expect(await differenceFrom(logOf(), [])).toBeUndefined();
    expect(await differenceFrom(logOf(eventOf(3)), [{ ...anchor(3), id: 'other' }])).toEqual({
      certain: true,
      text: 'the read models hold revision 2 of svc-fleet as event other, but it is id-svc-fleet-3 here',
    });
  });

  it('that the log lacks prove nothing certain, and nothing at all where events expire', async () => {
    expect(await differenceFrom(logOf(eventOf(9)), [anchor(3)])).toMatchObject({ certain: false });
    expect(await differenceFrom(logOf(), [anchor(3)])).toMatchObject({ certain: false });
    expect(await differenceFrom(logOf(), [anchor(3, facts)])).toBeUndefined();
    expect(await differenceFrom(logOf(eventOf(9, 'E', facts)), [anchor(3, facts)])).toBeUndefined();
  });

  it('must hold before a subscription begins', async () => {
    const subscribed = async (store: EventStore, ...stored: ReturnType<typeof anchor>[]): Promise<unknown> => {
      const items: unknown[] = [];
      for await (const item of anchored(store, createAnchors(stored)).subscribe({} as never)) items.push(item);
      return items;
    };
    expect(await subscribed(logOf(eventOf(3)), anchor(3))).toEqual([{ kind: 'caught_up' }]);
    await expect(subscribed(logOf(eventOf(3)), { ...anchor(3), id: 'other' })).rejects.toBeInstanceOf(AnotherLogError);
    await expect(subscribed(logOf(), anchor(3))).rejects.toMatchObject({ code: 'unavailable' });
    await expect(subscribed(logOf(), anchor(3))).rejects.not.toBeInstanceOf(AnotherLogError);
  });
});
