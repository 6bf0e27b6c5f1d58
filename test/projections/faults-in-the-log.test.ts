/**
 * Events that cannot be applied: live, only the entity is parked; a first fill stops; an unknown event stops
 * everything.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { streams } from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import { names } from '../../src/projections/models/names.js';
import type { ReadModel } from '../../src/projections/read-model.js';
import { readModels } from '../../src/projections/read-models.js';
import { eventually } from '../support/eventually.js';
import {
  append,
  nameOf,
  nodeCreated,
  nodeRenamed,
  openReadSide,
  planned,
  type ReadSide,
} from '../support/read-side.js';

let side: ReadSide;
let errors: object[];
beforeEach(async () => {
  errors = [];
  const nothing = (): void => undefined;
  side = await openReadSide({ debug: nothing, info: nothing, warn: nothing, error: (fields) => errors.push(fields) });
});
afterEach(() => side.close());

const [sick, healthy] = ['sick', 'healthy'].map((name) => uuidFromName(name));

/** The read models of this release, with a fold of names that fails for one of them. */
const withPoison: readonly ReadModel[] = readModels.map((model) =>
  model.name !== names.name
    ? model
    : {
        ...model,
        evolve(fields, event, command, id) {
          if (JSON.stringify(event.data).includes('poison')) throw new TypeError('no fold for this');
          return model.evolve(fields, event, command, id);
        },
      },
);

describe('an entity that an event cannot be applied to', () => {
  it('is the only one parked, is logged, and stays parked after a restart', async () => {
    await side.append([nodeCreated(sick!), nodeCreated(healthy!)]);
    const projections = await side.started({ models: withPoison });
    const { position } = await append(side.stores.eventStore, nodeRenamed(sick!, 'poison'));
    await side.append([nodeRenamed(sick!, 'after'), nodeRenamed(healthy!, 'well')]);
    const head = await side.stores.eventStore.headPosition();
    expect(await projections.reached(head, 10_000)).toBe(true);
    const parked = { projection: names.name, id: `node/${sick}`, position, error: 'TypeError: no fold for this' };
    expect(projections.status()).toMatchObject({ caughtUp: true, parked: [parked] });
    expect(errors).toEqual([parked]);
    expect(await nameOf(projections, sick!)).toBe(sick);
    expect(await nameOf(projections, healthy!)).toBe('well');
    // Other read models still project it.
    expect(
      (await projections.audit.list({ page: 1, pageSize: 9, resourceId: sick, includeAccounts: true })).total,
    ).toBe(3);
    await projections.close();

    const again = await side.started({ models: withPoison });
    await side.append([nodeRenamed(sick!, 'later'), nodeRenamed(healthy!, 'better')]);
    expect(await again.reached(await side.stores.eventStore.headPosition(), 10_000)).toBe(true);
    expect(again.status().parked).toEqual([parked]);
    expect(await nameOf(again, sick!)).toBe(sick);
    expect(await nameOf(again, healthy!)).toBe('better');
  });
});

describe('an unknown event', () => {
  it.each([
    ['an unknown type', { type: 'NodeTeleported', schema: 1 }],
    ['a newer shape', { type: 'NodeConfigRefreshed', schema: 99 }],
  ])('of %s stops the projections before it, and the status names it', async (_, { type, schema }) => {
    await side.append([nodeCreated(healthy!)]);
    const projections = await side.started();
    const seen: (string | null)[] = [];
    projections.onStatusChange(({ unknownEvent }) => seen.push(unknownEvent));
    const { position: good } = await append(side.stores.eventStore, nodeRenamed(healthy!, 'well'));
    const { position: unknown } = await append(
      side.stores.eventStore,
      planned(streams.fleet, [{ type, data: { node_id: healthy } }], { schema }),
    );
    await side.append([nodeRenamed(healthy!, 'never')]);
    await eventually(() => projections.status().unknownEvent).toBe(type);
    expect(projections.status()).toMatchObject({ caughtUp: false, position: good });
    expect(seen.at(-1)).toBe(type);
    expect(errors).toMatchObject([{ unknownEvent: type }]);
    expect(await nameOf(projections, healthy!)).toBe('well');
    expect(await projections.reached(unknown!, 50)).toBe(false);
    await projections.close();
    // A restart does not skip it either.
    const again = await side.start();
    await eventually(() => again.status().unknownEvent).toBe(type);
    expect(await nameOf(again, healthy!)).toBe('well');
  });
});
