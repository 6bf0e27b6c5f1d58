/**
 * The newest tries of each webhook in the read store, for display, and for a skip to know what failed. Implements
 * `docs/contract/automation.md#webhooks`, `deliveries`.
 */
import { isOfFuture, type Clock } from '../kernel/clock.js';
import type { Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import { createLru } from '../kernel/lru.js';
import type { ReadStore } from '../storage/read-store.js';
import { removeGone } from '../storage/remove-gone.js';
import type { Delivery } from './port.js';
import { tuning } from './tuning.js';

type StoredDelivery = Omit<Delivery, 'type'> & {
  readonly type: string;
  readonly webhook_id: string;
  readonly order: string;
};

export interface Deliveries {
  /** @throws ServiceError `unavailable`, as the others */
  add(id: string, delivery: Delivery): Promise<void>;
  /** Newest first. */
  newest(id: string, limit: number): Promise<readonly Delivery[]>;
  /** Removes those of a deleted webhook. */
  forget(id: string): Promise<void>;
  /** Removes deliveries that were recorded after `forget`, or that it could not remove, once they are a day old. */
  removeGone(isGone: (id: string) => boolean): Promise<void>;
}

/** @throws ServiceError `unavailable` */
export async function openDeliveries(
  readStore: Pick<ReadStore, 'collection'>,
  ids: Ids,
  clock: Pick<Clock, 'now'>,
): Promise<Deliveries> {
  const stored = await readStore.collection<StoredDelivery>({
    name: 'webhook_deliveries',
    version: 1,
    index: { group: 'webhook_id', order: 'order' },
  });
  /** Deliveries since the start, by webhook. */
  const added = createLru<number>(limits.webhooks.inAll);

  async function keep(id: string, count: number): Promise<void> {
    const all = await stored.find({ groups: [id], direction: 'desc', limit: count + tuning.walk });
    // Those of a clock that was ahead would stay the newest.
    const others = all.filter(({ fields }) => !isOfFuture(Date.parse(fields.at), clock.now()));
    const kept = new Set(others.slice(0, count));
    await stored.remove(all.flatMap((document) => (kept.has(document) ? [] : [document.id])));
  }

  return {
    async add(id, delivery) {
      const count = (added.get(id) ?? 0) + 1;
      added.set(id, count);
      const order = `${delivery.at} ${String(count).padStart(12, '0')}`;
      await stored.set([{ id: ids.next(), fields: { ...delivery, webhook_id: id, order } }]);
      // Also at the first one, because a process may end before it has recorded many.
      if (count % tuning.trimEvery === 1) await keep(id, limits.webhooks.deliveries);
    },
    async newest(id, limit) {
      const found = await stored.find({ groups: [id], direction: 'desc', limit });
      return found.map(({ fields: { webhook_id: _id, order: _order, ...delivery } }) => delivery as Delivery);
    },
    forget: (id) => keep(id, 0),
    removeGone: (isGone) => removeGone(stored, tuning.walk, clock, ({ fields }) => isGone(fields.webhook_id)),
  };
}
