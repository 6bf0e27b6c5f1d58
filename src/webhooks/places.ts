/**
 * How far webhooks are, as the stores hold it. The read store has the place to the item, written behind each answer, the tries
 * of the item that fails, and the newest deliveries; the log has the place as a fact, for a read store that was emptied.
 * A place is written only if it lies behind the stored one, so an instance that was frozen moves nothing back.
 * Implements `docs/contract/automation.md#webhooks`, "the log is the outbox".
 */
import { readEvent, schemaVersions } from '../domain/log/upcast.js';
import type { WebhookCursorMoved } from '../domain/webhook/cursors.js';
import { webhookCursor } from '../domain/webhook/cursors.js';
import type { WebhookState } from '../domain/webhook/webhook.js';
import type { FeedPlace } from '../feed/port.js';
import { timestamp } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import { isForeign, streams } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import type { EventStore } from '../storage/event-store.js';
import type { ReadStore } from '../storage/read-store.js';
import type { Delivery } from './port.js';
import { tuning } from './tuning.js';

/** The tries of the item behind the place, and the newest fact. */
export type Tries = {
  /** Of the webhook when they were made. */
  readonly tries_since: number;
  readonly failures: number;
  /** When to try again, in milliseconds since the epoch; 0 for at once. */
  readonly next_at: number;
  /** The fact in the log: what it says, and when it was written, in milliseconds since the epoch. */
  readonly fact_cursor: string | null;
  readonly fact_state: WebhookCursorMoved['data']['state'];
  readonly fact_at: number;
};

const noTries: Tries = {
  tries_since: -1,
  failures: 0,
  next_at: 0,
  fact_cursor: null,
  fact_state: 'ok',
  fact_at: 0,
};

type Place = { readonly webhook_id: string; readonly cursor: string | null; readonly position: number };
type StoredDelivery = Omit<Delivery, 'type'> & {
  readonly type: string;
  readonly webhook_id: string;
  readonly order: string;
};

export interface StoredPlace {
  /** Undefined when the read store has none. */
  readonly place: FeedPlace | undefined;
  readonly tries: Tries;
}

/** A place as the log has it. */
interface RecordedPlace {
  readonly cursor: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

type Known = Pick<WebhookState, 'id' | 'since'>;

export interface Places {
  /** @throws ServiceError `unavailable`, as the others */
  get(webhook: Known): Promise<StoredPlace>;
  savePlace(webhook: Known, place: FeedPlace): Promise<void>;
  saveTries(id: string, tries: Tries): Promise<void>;
  /** Writes the fact. */
  record(fact: WebhookCursorMoved['data'], at: number): Promise<void>;
  /**
   * The newest fact of a webhook, if it has one.
   * @param behind the log position behind which it stands
   */
  fact(webhook: Known, behind: number): Promise<RecordedPlace | undefined>;
  addDelivery(id: string, delivery: Delivery): Promise<void>;
  /** Newest first. */
  deliveries(id: string, limit: number): Promise<readonly Delivery[]>;
  /**
   * Removes the places that no longer count, and all that is stored of deleted webhooks.
   * @param revision of `svc-fleet` that the caller knows: what is younger is left alone
   * @param current the `since` of a webhook now; undefined for one that is deleted
   */
  sweep(revision: number, current: (id: string) => number | undefined): Promise<void>;
}

export interface PlacesDeps {
  readonly eventStore: Pick<EventStore, 'append' | 'read'>;
  readonly readStore: Pick<ReadStore, 'collection'>;
  readonly ids: Ids;
}

const placeId = ({ id, since }: Known): string => `${id}/${since}`;

/** @throws ServiceError `unavailable` */
export async function openPlaces({ eventStore, readStore, ids }: PlacesDeps): Promise<Places> {
  const places = await readStore.collection<Place>({ name: 'webhook_places', version: 1 });
  const tried = await readStore.collection<Tries>({ name: 'webhook_tries', version: 1 });
  const deliveries = await readStore.collection<StoredDelivery>({
    name: 'webhook_deliveries',
    version: 1,
    index: { group: 'webhook_id', order: 'order' },
  });
  let added = 0;

  return {
    async get(webhook) {
      const [stored, tries] = await Promise.all([places.get(placeId(webhook)), tried.get(webhook.id)]);
      const { position, cursor } = stored?.fields ?? { position: undefined, cursor: null };
      return { place: position === undefined ? undefined : { position, cursor }, tries: tries?.fields ?? noTries };
    },
    async savePlace(webhook, { position, cursor }) {
      const fields = { webhook_id: webhook.id, position, cursor };
      // A guard is above 0, and the place before the first event is at -1.
      await places.write([{ kind: 'put', id: placeId(webhook), position: position + 2, fields }]);
    },
    saveTries: (id, tries) => tried.set([{ id, fields: tries }]),
    async record(data, at) {
      const outcome = await eventStore.append(streams.webhooks, 'any', [
        {
          id: ids.next(),
          type: 'WebhookCursorMoved',
          data,
          metadata: {
            command: { id: ids.next(), index: 0, count: 1 },
            actor: { type: 'system', id: 'service', name: 'service' },
            request_id: 'webhooks',
            occurred_at: timestamp(at),
            schema_version: schemaVersions.WebhookCursorMoved,
          },
        },
      ]);
      if (outcome.kind !== 'appended')
        throw new ServiceError('unavailable', `a cursor was not recorded: ${outcome.kind}`);
    },
    async fact({ id, since }, behind) {
      const newestFirst = { direction: 'backward', from: 'end', maxCount: Number.MAX_SAFE_INTEGER } as const;
      for await (const event of eventStore.read(streams.webhooks, newestFirst)) {
        if (event.position < behind) break;
        if (isForeign(event)) continue;
        const { data } = webhookCursor(readEvent(event));
        if (data.webhook_id !== id || data.since !== since) continue;
        return { cursor: data.cursor, at: Date.parse(event.metadata.occurred_at) };
      }
      return undefined;
    },
    async addDelivery(id, delivery) {
      added += 1;
      const order = `${delivery.at} ${String(added).padStart(12, '0')}`;
      await deliveries.set([{ id: ids.next(), fields: { ...delivery, webhook_id: id, order } }]);
      if (added % tuning.trimEvery !== 0) return;
      const more = await deliveries.find({
        groups: [id],
        direction: 'desc',
        skip: limits.webhooks.deliveries,
        limit: tuning.walk,
      });
      await deliveries.remove(more.map((document) => document.id));
    },
    async deliveries(id, limit) {
      const found = await deliveries.find({ groups: [id], direction: 'desc', limit });
      return found.map(({ fields: { webhook_id: _id, order: _order, ...delivery } }) => delivery as Delivery);
    },
    async sweep(revision, current) {
      for (let after: string | undefined; ;) {
        const some = await places.list(after, tuning.walk);
        for (const { id: stored, fields } of some) {
          const [id, since] = [fields.webhook_id, Number(stored.slice(stored.indexOf('/') + 1))];
          if (since > revision || current(id) === since) continue;
          await places.remove([stored]);
          if (current(id) !== undefined) continue;
          await tried.remove([id]);
          const left = await deliveries.find({ groups: [id], direction: 'desc', limit: tuning.walk });
          await deliveries.remove(left.map((document) => document.id));
        }
        if (some.length < tuning.walk) return;
        after = some.at(-1)?.id;
      }
    },
  };
}
