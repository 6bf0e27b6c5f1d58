/**
 * How commands are applied to read models, with stores that fail on purpose: what is written, what is parked, what stops the
 * projections, and who says that it reads which layout (`docs/architecture.md#read-models`).
 */
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/kernel/errors.js';
import type { RecordedCommand } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { applyCommands, documentsPerTurn, writeAll, type ApplyTarget } from '../../src/projections/engine/apply.js';
import { announceReading, anyReader, othersRead, stopReading } from '../../src/projections/engine/layout.js';
import { ProjectionsStopped } from '../../src/projections/engine/fold.js';
import type { ParkedEntity } from '../../src/projections/port.js';
import type { ReadModel } from '../../src/projections/read-model.js';
import type { Collection, ReadStore, StoredDocument } from '../../src/storage/read-store.js';

/** One event about the entities that its data names; the type says what the fold makes of it. */
function command(position: number, type: string, ...ids: readonly string[]): RecordedCommand {
  const metadata = {
    command: { id: `c${position}`, index: 0, count: 1 },
    actor: { type: 'system', id: 's', name: 's' },
    request_id: 'r',
    occurred_at: '2025-01-01T00:00:00.000Z',
    schema_version: 1,
  } as const;
  const event = {
    id: `e${position}`,
    type,
    data: { ids },
    stream: 'svc-fleet',
    revision: position,
    position,
    metadata,
  };
  return { stream: 'svc-fleet', events: [event] };
}

/** Lists the types of events; `Bad` cannot be applied, `Nameless` not even named, `Same` changes nothing. */
const model = (name: string): ReadModel => ({
  name,
  keys({ type, data }) {
    if (type === 'Nameless') throw new Error('no names');
    return data['ids'] as readonly string[];
  },
  evolve(fields, { type }) {
    if (type === 'Bad') throw new Error('cannot be applied');
    return type === 'Same' ? fields : { types: `${String(fields?.['types'] ?? '')}${type}` };
  },
});

const unavailable = () => new ServiceError('unavailable', 'away');

interface Setup {
  readonly stored?: readonly StoredDocument[];
  readonly models?: readonly string[];
  readonly parked?: readonly string[];
  readonly rebuilding?: boolean;
  /** What a write of these documents throws, if anything. */
  fails?(writes: readonly StoredDocument[]): Error | undefined;
}

function target({ stored = [], models = ['one'], parked = [], rebuilding = false, fails }: Setup = {}) {
  const written: (readonly StoredDocument[])[] = [];
  const loaded: (readonly string[])[] = [];
  const added: ParkedEntity[] = [];
  const logged: object[] = [];
  /** How many documents each try to write holds. */
  const tried: number[] = [];
  let parkings = 0;
  let running = 0;
  const collection = {
    async getMany(ids: readonly string[]) {
      loaded.push(ids);
      return stored.filter(({ id }) => ids.includes(id));
    },
    async write(writes: readonly StoredDocument[]) {
      running += 1;
      tried.push(writes.length);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      const error = fails?.(writes);
      if (error !== undefined) throw error;
      written.push(writes);
    },
  } as unknown as Collection;
  const apply: ApplyTarget = {
    models: models.map(model),
    collections: new Map(models.map((name) => [name, collection])),
    parking: {
      has: (projection, id) => parked.includes(`${projection}/${id}`),
      list: () => added,
      async add(entities) {
        parkings += 1;
        added.push(...entities);
      },
    },
    logger: { ...silentLogger, error: (fields: object) => void logged.push(fields) } as never,
    rebuilding: () => rebuilding,
  };
  return { apply, written, loaded, added, logged, tried, running: () => running, parkings: () => parkings };
}

describe('applied commands', () => {
  it('are one write for each document', async () => {
    const before = { id: 'a', position: 10, fields: { types: 'X' } };
    const { apply, written, loaded } = target({ stored: [before] });
    await applyCommands(apply, [command(20, 'E', 'a', 'b'), command(30, 'F', 'a'), command(40, 'Same', 'c')]);
    expect(loaded).toEqual([['a', 'b', 'c']]);
    expect(written).toEqual([
      [
        { id: 'a', position: 30, fields: { types: 'XEF' } },
        { id: 'b', position: 20, fields: { types: 'E' } },
      ],
    ]);
  });

  it('write nothing, and load nothing, for a read model that they do not concern', async () => {
    const { apply, written, loaded } = target({ models: ['one', 'two'] });
    await applyCommands(apply, [command(20, 'E')]);
    expect([written, loaded]).toEqual([[], []]);
    await applyCommands(apply, [command(20, 'Same', 'a')]);
    expect([written, loaded]).toEqual([[], [['a'], ['a']]]);
    await applyCommands({ ...apply, collections: new Map() }, [command(20, 'E', 'a')]);
    expect(written).toEqual([]);
  });

  it('are written for all read models at once', async () => {
    const many = Array.from({ length: documentsPerTurn }, (_, index) => `n${index}`);
    const { apply, written } = target({ models: ['one', 'two', 'three'] });
    await applyCommands(apply, [command(20, 'E', ...many)]);
    expect(written.map(({ length }) => length)).toEqual([documentsPerTurn, documentsPerTurn, documentsPerTurn]);
  });

  it.each([
    ['each read model has very many', documentsPerTurn, 'one other two three'],
    ['two of them have very many together', documentsPerTurn / 2, 'one two other three'],
    ['there are few', documentsPerTurn / 4, 'one two three'],
  ])('let others run in between as often as there are documents for a turn: %s', async (_, count, order) => {
    const { apply } = target({ models: ['one', 'two', 'three'] });
    const seen: string[] = [];
    const noting = (name: string) =>
      ({
        getMany: async () => {
          seen.push(name);
          return [];
        },
        write: async () => undefined,
      }) as unknown as Collection;
    const collections = new Map(['one', 'two', 'three'].map((name) => [name, noting(name)]));
    setImmediate(() => void seen.push('other'));
    const ids = Array.from({ length: count }, (__, index) => `n${index}`);
    await applyCommands({ ...apply, collections }, [command(20, 'E', ...ids)]);
    expect(seen.join(' ')).toBe(order);
  });

  it('park an entity that one cannot be applied to, and write all others and what came before', async () => {
    const { apply, written, added, logged } = target();
    await applyCommands(apply, [command(20, 'E', 'a', 'b'), command(30, 'Bad', 'a'), command(40, 'F', 'a', 'b')]);
    expect(written).toMatchObject([
      [
        { id: 'a', position: 20 },
        { id: 'b', position: 40, fields: { types: 'EF' } },
      ],
    ]);
    expect(added).toEqual([{ projection: 'one', id: 'a', position: 30, error: 'Error: cannot be applied' }]);
    expect(logged).toEqual(added);
  });

  it('pass over an entity that is parked, in its read model alone', async () => {
    const { apply, written } = target({ models: ['one', 'two'], parked: ['one/a'] });
    await applyCommands(apply, [command(20, 'E', 'a', 'b')]);
    expect(written.map((writes) => writes.map(({ id }) => id))).toEqual([['b'], ['a', 'b']]);
  });

  it('stop a rebuild where one cannot be applied', async () => {
    const { apply, added, parkings } = target({ rebuilding: true });
    const applying = applyCommands(apply, [command(30, 'Bad', 'a')]);
    await expect(applying).rejects.toBeInstanceOf(ProjectionsStopped);
    await expect(applyCommands(apply, [command(30, 'Bad', 'a')])).rejects.toThrow(/rebuild of one .* 30, entity a: /);
    expect(added).toEqual([]);
    await applyCommands(apply, [command(30, 'E', 'a')]);
    expect(parkings()).toBe(0);
  });

  it('stop when a read model cannot name the entities of an event', async () => {
    const applying = applyCommands(target().apply, [command(30, 'Nameless', 'a')]);
    await expect(applying).rejects.toMatchObject({
      name: 'ProjectionsStopped',
      message: expect.stringContaining('one cannot name'),
      cause: expect.any(Error),
    });
  });

  it('are tried again by the caller when the store is away, with no write left running', async () => {
    const { apply, written, added, running } = target({ models: ['one', 'two'], fails: () => unavailable() });
    await expect(applyCommands(apply, [command(20, 'E', 'a')])).rejects.toMatchObject({ code: 'unavailable' });
    expect([written, added, running()]).toEqual([[], [], 0]);
  });

  it('leave no write running when a later read model stops them', async () => {
    const { apply, written, running } = target();
    const nameless = {
      ...model('two'),
      keys: () => {
        throw new Error('no names');
      },
    };
    const both = { ...apply, models: [model('one'), nameless] };
    await expect(applyCommands(both, [command(20, 'E', 'a')])).rejects.toBeInstanceOf(ProjectionsStopped);
    expect([written.length, running()]).toEqual([1, 0]);
  });
});

describe('a write that the store refuses for good', () => {
  const puts = ['a', 'b', 'c'].map((id, index): StoredDocument => ({ id, position: index, fields: {} }));

  it('is parked alone, and all others are written', async () => {
    const { apply, written } = target({
      fails: (writes) => (writes.some(({ id }) => id === 'b') ? new Error('too large') : undefined),
    });
    const poisoned: ParkedEntity[] = [];
    await writeAll(apply, 'one', puts, poisoned);
    expect(written.map((writes) => writes.map(({ id }) => id))).toEqual([['a'], ['c']]);
    expect(poisoned).toEqual([{ projection: 'one', id: 'b', position: 1, error: 'Error: too large' }]);
  });

  it('is not parked while the store is away, be it at first or one by one', async () => {
    const poisoned: ParkedEntity[] = [];
    const away = target({ fails: () => unavailable() });
    await expect(writeAll(away.apply, 'one', puts, poisoned)).rejects.toMatchObject({ code: 'unavailable' });
    const later = target({ fails: (writes) => (writes.length > 1 ? new Error('refused') : unavailable()) });
    await expect(writeAll(later.apply, 'one', puts, poisoned)).rejects.toMatchObject({ code: 'unavailable' });
    const other = target({ fails: () => new ServiceError('conflict', 'not an outage') });
    await writeAll(other.apply, 'one', puts.slice(0, 1), poisoned);
    expect(poisoned.map(({ id }) => id)).toEqual(['a']);
    // A store that is away is asked once, not once for each document.
    expect([away.tried, later.tried]).toEqual([[3], [3, 1]]);
  });

  it('does not happen where there is nothing to write, or nowhere', async () => {
    const { apply, tried } = target({ fails: () => new Error('asked') });
    const poisoned: ParkedEntity[] = [];
    await writeAll(apply, 'one', [], poisoned);
    await writeAll(apply, 'elsewhere', puts, poisoned);
    expect([tried, poisoned]).toEqual([[], []]);
  });
});

describe('the readers of a layout', () => {
  function leases() {
    const held = new Map<string, unknown>();
    const store = {
      leases: {
        take: async (kind: string, { name, data }: { readonly name: string; readonly data: unknown }) =>
          void held.set(`${kind} ${name}`, data),
        release: async (kind: string, name: string) => void held.delete(`${kind} ${name}`),
        list: async (kind: string) =>
          [...held].filter(([key]) => key.startsWith(`${kind} `)).map(([, data]) => ({ data })),
      },
    } as unknown as ReadStore;
    return { store, held };
  }

  it.each<[string, readonly (readonly [release: number, numbers: readonly number[]])[], boolean]>([
    ['nobody', [], false],
    ['somebody who reads the same layout', [[3, [2]]], false],
    ['somebody who reads another', [[3, [1]]], true],
    ['somebody who reads both', [[3, [2, 1]]], true],
    ['somebody who does not know yet', [[3, []]], true],
    ['somebody of another release', [[4, [1]]], false],
    [
      'one of several',
      [
        [3, [2]],
        [3, [1]],
      ],
      true,
    ],
  ])('are others: %s', async (_, readers, others) => {
    const { store } = leases();
    for (const [index, [release, numbers]] of readers.entries())
      await announceReading(store, `r${index}`, release, numbers, 1000);
    expect(await othersRead(store, 3, 2)).toBe(others);
    expect(await anyReader(store)).toBe(readers.length > 0);
  });

  it('are nobody after they have stopped, and what is no list of layouts is none', async () => {
    const { store, held } = leases();
    await announceReading(store, 'r', 3, [1], 1000);
    await stopReading(store, 'r');
    expect([await anyReader(store), await othersRead(store, 3, 2)]).toEqual([false, false]);
    held.set('read_model_readers x', { release: 3, numbers: 'all' });
    expect([await anyReader(store), await othersRead(store, 3, 2)]).toEqual([true, false]);
  });
});
