/**
 * What the disk holds when the machine loses power in the middle of a commit: everything that was flushed, and any of the
 * pages that were not. The images are made from the files as they were after each commit.
 */
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openEmbedded, type EmbeddedStores } from '../../src/storage/embedded/open-embedded.js';
import type { Collection, CollectionSpec } from '../../src/storage/read-store.js';
import { commandOf, readAll } from './contract/appending.js';
import { temporaryFolder } from './contract/temporary-folder.js';

const pageBytes = 4096;
const metaBytes = 2 * pageBytes;
const commits = 17;
const spec: CollectionSpec = { name: 'seen', version: 1, index: { group: 'in', order: 'n' } };
const open = (dataDir: string): Promise<EmbeddedStores> =>
  openEmbedded({ dataDir, clock: systemClock, logger: silentLogger });

/** Numbers that look random and are the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % below;
  };
}

/** `next`, of which only some pages have reached the disk that held `before`; with the meta pages of `metas`. */
function torn(before: Buffer, next: Buffer, metas: Buffer, keep: () => boolean): Buffer {
  const image = Buffer.from(next);
  for (let at = metaBytes; at < before.length; at += pageBytes) if (!keep()) before.copy(image, at, at, at + pageBytes);
  metas.copy(image, 0, 0, metaBytes);
  return image;
}

interface Step {
  readonly file: Buffer;
  readonly durable: boolean;
  readonly state: unknown;
}

let template: Awaited<ReturnType<typeof temporaryFolder>>;
let documents: Step[];
let appends: Step[];

/** @param opened the collection; opening it is a commit */
const stateOfRead = async ({ readStore }: EmbeddedStores, opened?: Collection): Promise<unknown> => {
  const collection = opened ?? (await readStore.collection(spec));
  const items = await collection.find({ groups: ['all'], direction: 'asc', limit: 1_000 });
  const total = await collection.count({ groups: ['all'] });
  return {
    items: items.map(({ id, position, fields }) => [id, position, fields]),
    total,
    checkpoint: (await readStore.loadCheckpoint('models', 1))?.commit,
  };
};
const stateOfLog = async ({ eventStore }: EmbeddedStores): Promise<unknown> =>
  (await Promise.all(['svc-a', 'svc-b'].map((stream) => readAll(eventStore, stream)))).map((events) =>
    events.map(({ id, position }) => [id, position]),
  );

async function writeRead(stores: EmbeddedStores, file: string): Promise<Step[]> {
  const { readStore } = stores;
  const collection = await readStore.collection(spec);
  const random = numbers(7);
  const steps: Step[] = [];
  for (let n = 1; n <= commits; n += 1) {
    const durable = n % 5 === 0;
    if (durable) await readStore.saveCheckpoint('models', 1, { commit: n, prepare: n, anchors: [] });
    else {
      const writes = Array.from({ length: 1 + random(30) }, () => ({
        kind: 'put' as const,
        id: `id-${random(60)}`,
        position: n,
        fields: { n: random(1_000), text: 'x'.repeat(random(3_000)) },
      }));
      await collection.write(writes);
    }
    steps.push({ file: await readFile(file), durable, state: await stateOfRead(stores, collection) });
  }
  return steps;
}

async function writeLog(stores: EmbeddedStores, file: string): Promise<Step[]> {
  const random = numbers(11);
  const steps: Step[] = [];
  for (let n = 1; n <= commits; n += 1) {
    const events = commandOf(1 + random(6), { text: 'x'.repeat(random(3_000)) });
    await stores.eventStore.append(n % 2 === 0 ? 'svc-a' : 'svc-b', 'any', events);
    steps.push({ file: await readFile(file), durable: true, state: await stateOfLog(stores) });
  }
  return steps;
}

beforeAll(async () => {
  template = await temporaryFolder();
  const stores = await open(template.path);
  try {
    documents = await writeRead(stores, join(template.path, 'read', 'data.mdb'));
    appends = await writeLog(stores, join(template.path, 'log', 'data.mdb'));
  } finally {
    await stores.close();
  }
});
afterAll(() => template.remove());

async function stateFrom(
  store: 'log' | 'read',
  image: Buffer,
  stateOf: (stores: EmbeddedStores) => Promise<unknown>,
): Promise<unknown> {
  const folder = await temporaryFolder();
  try {
    await cp(template.path, folder.path, { recursive: true });
    await writeFile(join(folder.path, store, 'data.mdb'), image);
    const stores = await open(folder.path);
    try {
      return await stateOf(stores);
    } finally {
      await stores.close();
    }
  } finally {
    await folder.remove();
  }
}

describe('when the machine loses power during a commit', () => {
  it('the log holds every acknowledged append, and nothing of the next', async () => {
    const random = numbers(3);
    for (let index = 1; index + 1 < appends.length; index += 2) {
      const [at, next] = [appends[index]!, appends[index + 1]!];
      const image = torn(at.file, next.file, at.file, () => random(2) === 0);
      expect(await stateFrom('log', image, stateOfLog)).toEqual(at.state);
    }
  });

  it('the read models lose one commit at most, as a whole, and nothing that was written before a checkpoint', async () => {
    const random = numbers(5);
    let undone = 0;
    for (let index = 1; index + 1 < documents.length; index += 1) {
      const [before, at, next] = [documents[index - 1]!, documents[index]!, documents[index + 1]!];
      // The flush of a commit that is only visible has not reached its meta page.
      const flushed = at.durable ? at : before;
      if (!at.durable) undone += 1;
      const image = torn(at.file, next.file, flushed.file, () => random(2) === 0);
      expect(await stateFrom('read', image, stateOfRead)).toEqual(flushed.state);
    }
    expect(undone).toBeGreaterThan(10);
  });
});
