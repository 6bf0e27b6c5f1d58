/** `docs/contract/automation.md#webhooks`, "the cursor is a fact in the log": who takes a webhook over goes on from there. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { WebhookState } from '../../src/domain/webhook/webhook.js';
import type { FeedItem, FeedPlace } from '../../src/feed/port.js';
import { sleep } from '../../src/kernel/background.js';
import { timestamp } from '../../src/kernel/clock.js';
import { isForeign, streams } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { wholeStream } from '../../src/storage/event-store.js';
import { createCursors, noTries, type Cursors } from '../../src/webhooks/cursors.js';
import { startDeliverer, type Deliverer } from '../../src/webhooks/deliverer.js';
import type { Answer } from '../../src/webhooks/schedule.js';
import { nextShipments } from '../../src/webhooks/shipments.js';
import { eventually } from '../support/eventually.js';
import { createManualClock, type ManualClock } from '../support/manual-clock.js';
import { storesInMemory } from '../support/stores-in-memory.js';
import { webhookState } from '../support/webhook-state.js';

const hour = 3_600_000;
let clock: ManualClock;
let stores: ReturnType<typeof storesInMemory>;
let webhooks: WebhookState[];
/** Places in this feed are counted, and item `n` lies between `n` and `n + 1`. */
let items: FeedItem[];

const placeOf = (position: number): FeedPlace => ({ position, cursor: position < 0 ? null : String(position) });
const feed = {
  resolve: async (after: string) => placeOf(after === 'start' ? -1 : Number(after)),
  resolveMoved: async (cursor: string) => placeOf(Number(cursor)),
  behind: async () => placeOf(0),
  lag: async () => ({ seconds: 0, caught_up: true }),
  async read({ position }: FeedPlace) {
    const found = items.filter((item) => item.position > position);
    return { items: found, place: found.at(-1) ?? placeOf(position), looked: found.length, caughtUp: true };
  },
  wait: (_: FeedPlace, ms: number, signal?: AbortSignal) => sleep(Math.min(ms, 20), signal),
};

const webhook = (id: string, fields: Partial<WebhookState> = {}): WebhookState =>
  webhookState(id, timestamp(clock.now()), fields);

const cursorsOf = (all = () => webhooks): Cursors =>
  createCursors({ eventStore: stores.eventStore, feed, ids: randomIds, clock, all });
const factAt = (cursor: string, { id, since }: WebhookState = webhooks[0]!) => ({
  webhook_id: id,
  since,
  cursor,
  state: 'ok' as const,
  ...noTries(webhooks[0]!),
});

beforeEach(() => {
  clock = createManualClock();
  stores = storesInMemory();
  items = [];
  webhooks = [webhook('a')];
});
afterEach(() => stores.close());

describe('the newest fact', () => {
  test('is found by who has read nothing, and counts only for the event that it was written for', async () => {
    const writer = cursorsOf();
    for (const cursor of ['1', '2', '3']) await writer.record(factAt(cursor));
    const reader = cursorsOf();
    await reader.refresh();
    expect((await reader.checkpoint(webhooks[0]!)).place).toEqual(placeOf(3));
    await writer.record(factAt('4'));
    await reader.refresh();
    expect((await reader.checkpoint(webhooks[0]!)).place).toEqual(placeOf(4));
    const resumed = { ...webhooks[0]!, cursor: '2', since: 9 };
    expect((await reader.checkpoint(resumed)).place).toEqual(placeOf(2));
    expect((await reader.checkpoint({ ...resumed, cursor: 'start' })).place).toEqual(placeOf(-1));
  });

  test('of a webhook that is heard of later is found although all that is newer was read before', async () => {
    webhooks.push(webhook('b'));
    const writer = cursorsOf();
    await writer.record(factAt('1', webhooks[1]));
    clock.advance(2 * hour);
    await writer.record(factAt('2', webhooks[0]));
    let known = webhooks.slice(0, 1);
    const reader = cursorsOf(() => known);
    await reader.refresh();
    known = webhooks;
    await reader.refresh();
    expect((await reader.checkpoint(webhooks[1]!)).place).toEqual(placeOf(1));
  });

  test('is not looked for further back than the youngest webhook without one', async () => {
    const writer = cursorsOf();
    for (const cursor of ['1', '2', '3']) await writer.record(factAt(cursor));
    clock.advance(hour);
    webhooks = [webhook('new')];
    const read: string[] = [];
    const reader = createCursors({
      eventStore: {
        append: stores.eventStore.append,
        async *read(...args) {
          for await (const event of stores.eventStore.read(...args)) {
            read.push(event.id);
            yield event;
          }
        },
      },
      feed,
      ids: randomIds,
      clock,
      all: () => webhooks,
    });
    await reader.refresh();
    expect(read).toHaveLength(1);
  });

  test('is found of a webhook that a clock made that was ahead, and is set right', async () => {
    clock.jump(24 * hour);
    webhooks = [webhook('a')];
    clock.jump(-24 * hour);
    const writer = cursorsOf();
    await writer.record(factAt('1'));
    const reader = cursorsOf();
    await reader.refresh();
    expect((await reader.checkpoint(webhooks[0]!)).place).toEqual(placeOf(1));
  });

  test('is missing of a webhook that is older than a day: nobody says how far it is', async () => {
    const reader = cursorsOf();
    clock.advance(23 * hour);
    await reader.refresh();
    expect((await reader.checkpoint(webhooks[0]!)).place).toEqual(placeOf(0));
    clock.advance(2 * hour);
    await expect(reader.checkpoint(webhooks[0]!)).rejects.toMatchObject({ code: 'conflict' });
  });
});

describe('a deliverer', () => {
  const ok: Answer = { status: 204, error: null, retryAfterMs: null };
  let sent: { readonly item: string; readonly attempt: number }[];
  let answers: (item: string) => Promise<Answer>;
  let deliverers: Deliverer[];
  let forgotten: string[];
  /** How often the log was read for something to send. */
  let reads: number;
  const stop = vi.fn(async () => undefined);

  beforeEach(() => {
    sent = [];
    deliverers = [];
    forgotten = [];
    reads = 0;
    answers = async () => ok;
    stop.mockClear();
  });
  afterEach(() => Promise.all(deliverers.map((deliverer) => deliverer.close())));

  function start(lease = { holds: true }): Deliverer {
    const deliverer = startDeliverer({
      id: 'a',
      webhook: () => webhooks[0],
      holds: () => lease.holds,
      feed,
      cursors: cursorsOf(),
      deliveries: { add: async () => undefined, forget: async (id) => void forgotten.push(id) },
      async send(_, { cursor, type }, attempt) {
        sent.push({ item: cursor, attempt });
        const answer = await answers(cursor);
        const at = timestamp(clock.now());
        const { status, error } = answer;
        return { answer, delivery: { at, type, cursor, message_id: cursor, status, error, attempt, duration_ms: 1 } };
      },
      next: (of, from, signal) => {
        reads += 1;
        return nextShipments({ feed, clock, publicUrl: null }, of, from, signal);
      },
      stop,
      clock,
      logger: silentLogger,
    });
    deliverers.push(deliverer);
    return deliverer;
  }
  const happens = (position: number, at = ''): void => {
    const about = { type: 'command', resources: [], nodes: [], actor: null, readers: 'all' } as const;
    items.push({
      type: 'command',
      cursor: String(position),
      position,
      at,
      json: JSON.stringify({
        action: 'node.create',
        actor: { name: 'anna' },
        resource: { type: 'node', id: '', name: '' },
      }),
      about,
      final: null,
    } as FeedItem);
  };
  async function facts(): Promise<readonly unknown[]> {
    const found = [];
    for await (const event of wholeStream(stores.eventStore, streams.webhooks))
      if (!isForeign(event)) found.push([event.data['cursor'], event.data['state'], event.data['failures']]);
    return found;
  }

  test('writes a fact as it begins, every ten seconds while it moves, and as it closes', async () => {
    const deliverer = start();
    await eventually(facts).toEqual([['0', 'ok', 0]]);
    happens(1);
    happens(2);
    await eventually(() => sent.length).toBe(2);
    clock.advance(9_000);
    happens(3);
    await eventually(() => deliverer.checkpoint(webhooks[0]!)?.place.position).toBe(3);
    expect(await facts()).toHaveLength(1);
    clock.advance(1_000);
    await eventually(facts).toEqual([
      ['0', 'ok', 0],
      ['3', 'ok', 0],
    ]);
    happens(4);
    await eventually(() => deliverer.checkpoint(webhooks[0]!)?.place.position).toBe(4);
    await deliverer.close();
    expect((await facts()).at(-1)).toEqual(['4', 'ok', 0]);
  });

  test('a window is read as it begins and as it ends, not again and again while it lasts', async () => {
    webhooks = [webhook('a', { format: 'mattermost', group_secs: 3600, url: 'https://hooks.example' })];
    happens(1, timestamp(clock.now()));
    const deliverer = start();
    await eventually(() => reads).toBe(1);
    for (let looked = 0; looked < 5; looked += 1) {
      happens(2 + looked, timestamp(clock.now()));
      clock.advance(60_000);
      deliverer.look();
      await eventually(async () => (await facts()).length).toBeGreaterThan(0);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect([reads, sent]).toEqual([1, []]);
    clock.advance(hour);
    deliverer.look();
    await eventually(() => sent.length).toBe(1);
  });

  test('a clock that was ahead and is set right makes neither a message nor a try wait', async () => {
    webhooks = [webhook('a', { format: 'mattermost', group_secs: 60, url: 'https://hooks.example' })];
    const day = 24 * hour;
    clock.jump(day);
    happens(1, timestamp(clock.now()));
    clock.jump(-day);
    const deliverer = start();
    await eventually(() => sent.length).toBe(1);

    answers = async () => ({ status: 500, error: 'the receiver answered 500', retryAfterMs: null });
    clock.jump(day);
    happens(2, timestamp(clock.now() - 60_000));
    deliverer.look();
    await eventually(() => sent.length).toBe(2);
    clock.jump(-day);
    answers = async () => ok;
    deliverer.look();
    await eventually(() => sent.length).toBe(3);
    await eventually(async () => (await facts()).at(-1)).toEqual(['2', 'ok', 0]);
  });

  test('writes one a day, of a disabled one too', async () => {
    webhooks = [webhook('a', { enabled: false })];
    const deliverer = start();
    await eventually(facts).toEqual([['0', 'disabled', 0]]);
    clock.advance(24 * hour);
    deliverer.look();
    await eventually(facts).toEqual([
      ['0', 'disabled', 0],
      ['0', 'disabled', 0],
    ]);
  });

  test('writes each failure at once; who takes over counts on, and waits as long as was left', async () => {
    answers = async () => ({ status: 500, error: 'no', retryAfterMs: null });
    happens(1);
    const first = start();
    await eventually(facts).toContainEqual(['0', 'failing', 1]);
    const since = first.checkpoint(webhooks[0]!)?.tries.failing_since;
    await first.close();
    clock.advance(3_000);
    const second = start();
    await eventually(() => second.checkpoint(webhooks[0]!)?.tries.failures).toBe(1);
    expect(sent).toEqual([{ item: '1', attempt: 1 }]);
    clock.advance(2_000);
    second.look();
    await eventually(() => sent.at(-1)).toEqual({ item: '1', attempt: 2 });
    await eventually(facts).toContainEqual(['0', 'failing', 2]);
    expect([typeof since, second.checkpoint(webhooks[0]!)?.tries.failing_since]).toEqual(['string', since]);
    answers = async () => ok;
    clock.advance(30_000);
    second.look();
    await eventually(async () => (await facts()).at(-1)).toEqual(['1', 'ok', 0]);
  });

  test('forgets the deliveries of a deleted webhook, though its lease has ended; else the next one has them', async () => {
    const [one, other] = [{ holds: true }, { holds: true }];
    const [first, second] = [start(one), start(other)];
    await eventually(async () => (await facts()).length).toBe(2);
    one.holds = false;
    first.look();
    await eventually(() => first.done).toBe(true);
    expect(forgotten).toEqual([]);
    // Both change at once, because it also wakes by itself.
    [other.holds, webhooks] = [false, []];
    second.look();
    await eventually(() => forgotten).toEqual(['a']);
  });

  test('without a fact after a day stops the webhook, which stays where its own events say', async () => {
    clock.advance(25 * hour);
    start();
    await eventually(() => stop.mock.calls.at(0)).toEqual([
      webhooks[0],
      '0',
      'the log does not say how far it has delivered (resume)',
    ]);
    expect(sent).toEqual([]);
  });
});
