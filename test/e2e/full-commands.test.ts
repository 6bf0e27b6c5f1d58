/**
 * The event feed over a log of the largest commands, with a heap of 256 MiB: what a page or a stream costs follows from what it
 * asks for, so that eight readers at once get all of it, and the process lives. Cites `docs/contract/automation.md#event-feed`.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { signIn, type RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { openInstallation } from '../../src/app/installation/installation.js';
import { asRecorded, propose } from '../../src/commands/proposal.js';
import { compilerVersion } from '../../src/kernel/release.js';
import { applyCommand } from '../../src/domain/fleet/apply.js';
import { decideFleet } from '../../src/domain/fleet/decide.js';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import { systemClock } from '../../src/kernel/clock.js';
import { createClosers } from '../../src/kernel/closers.js';
import { streams } from '../../src/kernel/event.js';
import { randomIds, uuidFromName } from '../../src/kernel/ids.js';
import { limits } from '../../src/kernel/limits.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openEventStream } from '../support/event-stream.js';

const commands = 250;
const readers = 8;
/** One command in so many is of another user: the readers begin there. */
const share = Math.ceil(commands / readers);
const marker = { type: 'user', id: uuidFromName('marker'), name: 'marker' } as const;
const other = { type: 'user', id: uuidFromName('other'), name: 'other' } as const;

/** Labels of the largest size but one. Four bytes in UTF-8, one character. */
const labels = (mark: number) =>
  Object.fromEntries(
    Array.from({ length: limits.rest.labels - 1 }, (_, index) => [
      `key-${index}`,
      `${mark} ${'\u{1F600}'.repeat(limits.rest.stringChars - 8)}`,
    ]),
  );

/** Writes the commands, each an edit of two nodes, as an apply may make it. @returns their ids */
async function writeLog(dataDir: string): Promise<readonly string[]> {
  const closers = createClosers(silentLogger);
  const deps = { clock: systemClock, ids: randomIds, logger: silentLogger, closers, onTakenOver: () => undefined };
  const [inline, file] = [undefined, undefined];
  const settings = { dataDir, eventStoreUrl: undefined, mongoUrl: undefined, masterKey: { inline, file } };
  try {
    const { eventStore, logChain } = await openInstallation(settings, deps);
    const fleet = emptyFleet();
    async function run(of: readonly FleetCommand[], actor: typeof marker | typeof other): Promise<string> {
      const decided = of.flatMap((command) => {
        const decision = decideFleet(fleet, command);
        if (!decision.ok) throw new Error(decision.error.message);
        return decision.value;
      });
      const before = fleet.revision.value;
      const proposal = propose(decided, { actor, requestId: 'test' }, systemClock, randomIds, (proposed) => {
        const { link, head } = logChain.link(fleet.logChain.value, streams.fleet, proposed);
        fleet.logChain.set(head);
        return { link };
      });
      applyCommand(fleet, asRecorded(streams.fleet, proposal, before));
      const outcome = await eventStore.append(streams.fleet, before < 0 ? 'no_stream' : before, proposal.events);
      if (outcome.kind !== 'appended') throw new Error(`an append was not written: ${outcome.kind}`);
      return proposal.commandId;
    }
    await run([{ type: 'RaiseCompilerVersion', version: compilerVersion }], other);
    const nodes = ['a', 'b'].map((name) => ({ id: uuidFromName(name), name }));
    for (const node of nodes) {
      const fields = { description: null, address: '192.0.2.1', labels: labels(0), psk: null };
      await run([{ type: 'CreateNode', ...node, ...fields }], other);
    }
    const ids: string[] = [];
    for (let index = 0; index < commands; index += 1) {
      const edits = nodes.map(
        ({ id }) => ({ type: 'UpdateNode', id, ifMatch: undefined, labels: labels(index + 1) }) as const,
      );
      ids.push(await run(edits, index % share === 0 ? marker : other));
    }
    return ids;
  } finally {
    await closers.closeAll();
  }
}

interface Item {
  readonly cursor: string;
  readonly data: { readonly id: string; readonly changes: readonly { readonly after: string }[] };
}
interface Page {
  readonly items: readonly Item[];
  readonly cursor: string;
  readonly caught_up: boolean;
}

let folder: string;
let service: ServiceProcess;
let admin: RestClient;
let ids: readonly string[];
/** The items of the other user. */
const begins: Item[] = [];

const page = (query: string): Promise<Page> => admin.call<Page>('GET', `/api/events?${query}`);
/** The commands that the reader of this number has to get: from behind its beginning to the next one. */
const partOf = (reader: number): readonly string[] => ids.slice(reader * share + 1, (reader + 1) * share + 1);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-full-'));
  ids = await writeLog(folder);
  const env = { NODE_OPTIONS: '--max-old-space-size=256' };
  service = await prepareService({ dataDir: folder, env, readyWithinMs: 240_000 });
  await service.start();
  admin = await signIn(service.url, 'admin', service.adminPassword);
}, 300_000);

afterAll(async () => {
  expect(service.program().exited()).toBe(false);
  await service.stop();
  await rm(folder, { recursive: true, force: true });
});

test('eight pages of one item at once are one item each, the right one', async () => {
  const after = (await page('after=start&resource_type=node&page_size=2')).cursor;
  const pages = await Promise.all(Array.from({ length: readers }, () => page(`after=${after}&page_size=1`)));
  for (const { items, caught_up } of pages)
    expect([items.map(({ data }) => data.id), caught_up]).toEqual([[ids[0]], false]);
});

test('a filter finds few among many, though each page looks at a bounded piece', async () => {
  for (let after = 'start'; ;) {
    const { items, cursor, caught_up } = await page(`after=${after}&actor=marker&page_size=500`);
    begins.push(...items);
    if (caught_up) break;
    after = cursor;
  }
  expect(begins.map(({ data }) => data.id)).toEqual(ids.filter((_, index) => index % share === 0));
}, 300_000);

/** Pages from behind an item until the reader has its part. */
async function byPages({ cursor: begin }: Item, wanted: number, size: number): Promise<readonly Item[]> {
  const got: Item[] = [];
  for (let after = begin; got.length < wanted;) {
    const { items, cursor } = await page(`after=${after}&resource_type=node&page_size=${size}`);
    const chars = items.flatMap(({ data }) => data.changes).reduce((sum, { after: text }) => sum + text.length, 0);
    // An item shows each text twice, before and after, and a text has nearly two bytes for each unit.
    expect(items.length <= 1 || 4 * 0.9 * chars <= limits.feed.pieceBytes).toBe(true);
    got.push(...items);
    after = cursor;
  }
  return got;
}

async function byStream({ cursor }: Item, wanted: number, token: string): Promise<readonly Item[]> {
  const query = `?after=${cursor}&resource_type=node`;
  const stream = await openEventStream(service.url, { token, query });
  try {
    await expect.poll(() => stream.of('command').length, { timeout: 180_000 }).toBeGreaterThanOrEqual(wanted);
    return stream.of('command').map(({ id = '', data }) => ({ cursor: id, data }));
  } finally {
    stream.close();
  }
}

test('eight readers at once, four by pages and four by streams: nothing is missed, and nothing comes twice', async () => {
  const login = { username: 'admin', password: service.adminPassword };
  const { token } = await admin.call<{ token: string }>('POST', '/api/auth/login', login);
  const sizes = [500, 1, 100, 3];
  await Promise.all(
    begins.map(async (begin, reader) => {
      const wanted = partOf(reader);
      const size = sizes[reader];
      const got = await (size === undefined
        ? byStream(begin, wanted.length, token)
        : byPages(begin, wanted.length, size));
      const first = ids.indexOf(wanted[0] ?? '');
      expect(got.map(({ data }) => data.id)).toEqual(ids.slice(first, first + got.length));
      for (const { data } of got) {
        const mark = `${ids.indexOf(data.id) + 1} `;
        expect(data.changes.every(({ after }) => after.startsWith(mark))).toBe(true);
      }
    }),
  );
}, 300_000);
