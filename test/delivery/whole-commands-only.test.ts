/**
 * Property (`docs/contract/domain.md#commands-and-events`): for any history, and any way in which the log hands out
 * its events, no session is offered a state between two events of one command, no offer is older than the one before
 * it, and the last one is the newest.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeSnapshot } from '../../src/delivery/encode.js';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import { ServiceError } from '../../src/kernel/errors.js';
import type { JsonObject } from '../../src/kernel/json.js';
import type { EventStore } from '../../src/storage/event-store.js';
import {
  createDeliveryFixture,
  openSession,
  snapshotOf,
  until,
  type DeliveryFixture,
  type TestSession,
} from '../support/delivery-fixture.js';
import { noSecrets } from '../support/every-kind-of-rule.js';
import { storesInMemory } from '../support/stores-in-memory.js';

const nodes = ['n1', 'n2', 'n3'] as const;

type Step =
  | { readonly kind: 'refresh'; readonly node: number; readonly times: number }
  | { readonly kind: 'multiplex'; readonly ports: readonly number[] }
  | { readonly kind: 'mixed'; readonly node: number; readonly port: number }
  | { readonly kind: 'pause' };

const node = fc.integer({ min: 0, max: nodes.length - 1 });
const port = fc.integer({ min: 1, max: 60_000 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('refresh' as const), node, times: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ kind: fc.constant('multiplex' as const), ports: fc.array(port, { minLength: 1, maxLength: 4 }) }),
  fc.record({ kind: fc.constant('mixed' as const), node, port }),
  fc.record({ kind: fc.constant('pause' as const) }),
);

/** More than the events of one command: a command that is cut at every try would never be folded. */
const dropEvery = fc.integer({ min: 5, max: 40 });

/** Delivers every event alone and twice, with turns of the event loop between, and drops the subscription. */
function hostile(store: EventStore, every: number): EventStore {
  let delivered = 0;
  return {
    ...store,
    async *subscribe(options) {
      for await (const item of store.subscribe(options)) {
        if (item.kind !== 'events') {
          yield item;
          continue;
        }
        for (const event of item.events) {
          yield { kind: 'events', events: [event] };
          await new Promise((resolve) => setImmediate(resolve));
          yield { kind: 'events', events: [event] };
          delivered += 1;
          if (delivered % every === 0) throw new ServiceError('unavailable', 'dropped');
        }
      }
    },
  };
}

/** The events of a step as one command. Several change the same value, so half a command gives a state nobody wrote. */
function eventsOf(fixture: DeliveryFixture, of: Step): { type: string; data: JsonObject }[] {
  const ports = (list: readonly number[]): { type: string; data: JsonObject }[] => {
    let from = fixture.log.fleet.singletons.connectivity.value.multiplex_port;
    return list.map((to) => {
      const change = {
        type: 'ConnectivityUpdated',
        data: { changes: { multiplex: { from: null, to: true }, multiplex_port: { from, to } } },
      };
      from = to;
      return change;
    });
  };
  const refresh = (index: number) => ({ type: 'NodeConfigRefreshed', data: { node_id: nodes[index] ?? 'n1' } });
  switch (of.kind) {
    case 'refresh':
      return Array.from({ length: of.times }, () => refresh(of.node));
    case 'multiplex':
      return ports(of.ports);
    case 'mixed':
      return [refresh(of.node), ...ports([of.port]), refresh(of.node)];
    case 'pause':
      return [];
  }
}

describe('a session', () => {
  it('is offered only states after whole commands, and the newest at last', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 15 }), dropEvery, async (steps, every) => {
        const fixture = await createDeliveryFixture(storesInMemory());
        try {
          for (const id of nodes) await fixture.log.createNode(id);
          /** Checksums by node and generation, after each whole command. */
          const whole = new Map<string, string>();
          const note = (): void => {
            for (const id of nodes) {
              const push = encodeSnapshot(compileNode(fixture.log.fleet, id), noSecrets);
              whole.set(`${id}@${push.generation}`, Buffer.from(push.checksum).toString('hex'));
            }
          };
          note();
          const delivery = await fixture.start({ eventStore: hostile(fixture.stores.eventStore, every) });
          const sessions = new Map<string, TestSession>();
          const seen = new Map<string, number[]>();
          for (const id of nodes) {
            const session = openSession(delivery, id);
            sessions.set(id, session);
            seen.set(id, [snapshotOf(await session.ask()).generation]);
          }
          for (const each of steps) {
            const events = eventsOf(fixture, each);
            if (events.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
            else await fixture.log.append(events);
            note();
          }
          for (const id of nodes) {
            const newest = fixture.log.fleet.generationOf(id)!;
            const first = seen.get(id)![0]!;
            const offers = sessions.get(id)!.offers;
            await until(() => (offers.at(-1)?.generation ?? first) === newest, `${id} at ${newest}`);
            const generations = [first, ...offers.map(({ generation }) => generation)];
            expect(generations).toEqual([...new Set(generations)].sort((a, b) => a - b));
            for (const offer of offers) {
              expect(whole.get(`${id}@${offer.generation}`)).toBe(Buffer.from(offer.checksum).toString('hex'));
            }
          }
        } finally {
          await fixture.close();
        }
      }),
      { numRuns: 25 },
    );
  }, 120_000);
});
