/** Export and import keep an installation as it is: events, revisions, generations, wrapped keys. */
import { readFile, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { allStreams, streams } from '../../src/kernel/event.js';
import type { LogItem, SubscribeOptions } from '../../src/storage/event-store.js';
import { readImportMarker } from '../../src/storage/log-archive/import-log.js';
import { groupName, groupVersion } from '../../src/projections/read-models.js';
import { verifyArchive, verifyLog } from '../../src/storage/log-archive/verify-log.js';
import { retentions } from '../../src/commands/facts.js';
import { logCheck } from '../../src/backups/archive-scope.js';
import { hostileEventStore } from '../support/hostile.js';
import {
  appendFacts,
  contents,
  createInstallations,
  exportTo,
  fill,
  fleetBytes,
  importFrom,
  installationName,
  wholeLog,
  type Installations,
  type TestInstallation,
} from '../support/installations.js';
import { append, planned } from '../support/read-side.js';
import { startChild } from '../storage/children/start-child.js';

let installations: Installations;
let source: TestInstallation;
let path: string;
beforeEach(async () => {
  installations = createInstallations();
  source = await installations.open();
  path = join(installations.folder, 'archive.jsonl');
});
afterEach(() => installations.close());

const signal = new AbortController().signal;
const verify = (file: string) => verifyArchive(file, { check: logCheck, signal, onProgress: () => undefined });
const verifyLogOf = ({ eventStore }: TestInstallation) =>
  verifyLog(eventStore, { streams: allStreams, check: logCheck, signal, onProgress: () => undefined });

async function expectSame(target: TestInstallation): Promise<void> {
  const [before, after] = [await wholeLog(source.eventStore), await wholeLog(target.eventStore)];
  expect(contents(after)).toEqual(contents(before));
  expect(fleetBytes(after)).toBe(fleetBytes(before));
}

describe('a log that is exported and imported', () => {
  it('has the same events, revisions, generations and wrapped keys', async () => {
    await fill(source, 1, 60);
    const exported = await exportTo(path, source);
    const verified = await verify(path);
    expect(verified.problems).toEqual([]);
    expect(verified.header?.installation_id).toBe(installationName);
    expect((await stat(path)).mode & 0o777).toBe(0o600);

    const target = await installations.open();
    const imported = await importFrom(path, target);
    expect(imported).toMatchObject({ events: exported?.totals.events, written: true, renumbered: [] });
    await expectSame(target);
    const digests = [exported?.log, verified.log, (await verifyLogOf(source)).log, (await verifyLogOf(target)).log];
    expect(new Set(digests.map((log) => log?.contentSha256)).size).toBe(1);
  });

  it('is written whole, once and in order to a store that loses answers, refuses and delays', async () => {
    await fill(source, 4);
    await exportTo(path, source);
    const target = await installations.open();
    const hostile = hostileEventStore(target.eventStore, 99);
    await importFrom(path, { eventStore: hostile, readStore: target.readStore });
    await hostile.settled();
    await expectSame(target);
  });

  it('keeps its retention; facts that have not expired are numbered from 0', async () => {
    await fill(source, 5, 20);
    for (const { stream, retention } of retentions) await source.eventStore.setRetention(stream, retention);
    await appendFacts(source.eventStore, 300);
    source.clock.advance(80 * 24 * 3_600_000);
    await appendFacts(source.eventStore, 200);
    source.clock.advance(30 * 24 * 3_600_000);
    // The log expires nothing by the clock alone: its newest event says that the time has passed.
    await appendFacts(source.eventStore, 1);
    await source.eventStore.trim();
    await exportTo(path, source);
    expect((await verify(path)).problems).toEqual([]);

    const target = await installations.open();
    const imported = await importFrom(path, target);
    expect((await verifyLogOf(target)).log.contentSha256).toBe((await verify(path)).log.contentSha256);
    const renumbered = new Map(imported?.renumbered.map(({ stream, first }) => [stream, first]));
    expect([...renumbered.values()].some((first) => first >= 50)).toBe(true);
    const fleetOf = async ({ eventStore }: TestInstallation) =>
      contents((await wholeLog(eventStore)).filter(({ stream }) => stream === streams.fleet));
    expect(await fleetOf(target)).toEqual(await fleetOf(source));
    for (const { stream, revision } of contents(await wholeLog(target.eventStore)).toReversed()) {
      expect(revision).toBeGreaterThanOrEqual(0);
      if (renumbered.has(stream)) expect(stream.startsWith(streams.agentsPrefix)).toBe(true);
    }
    // The age of a fact counts from its import.
    const shard = (await wholeLog(target.eventStore)).find(({ stream }) => stream.startsWith(streams.agentsPrefix))!;
    const visible = async (): Promise<number> => {
      let count = 0;
      const all = { direction: 'forward', from: 'start', maxCount: 10_000 } as const;
      for await (const _event of target.eventStore.read(shard.stream, all)) count += 1;
      return count;
    };
    expect(await visible()).toBeGreaterThan(0);
    target.clock.advance(91 * 24 * 3_600_000);
    const data = { user_id: null, username: null, address: '192.0.2.1' };
    await append(target.eventStore, planned(streams.signins, [{ type: 'SignInRefused', data }]));
    expect(await visible()).toBe(0);
  });

  it('is the same after an export that was interrupted and continued while the log grew', async () => {
    await fill(source, 6);
    await appendFacts(source.eventStore, 2500);
    const stop = new AbortController();
    const onProgress = (events: number): void => (events > 1500 ? stop.abort() : undefined);
    expect(await exportTo(path, source, { signal: stop.signal, onProgress })).toBeUndefined();
    // A kill leaves the file in the middle of a line.
    const { size } = await stat(`${path}.part`);
    await truncate(`${path}.part`, size - 37);
    await appendFacts(source.eventStore, 100);
    const report = await exportTo(path, source);
    expect(report?.continued).toBeGreaterThan(900);
    expect(report?.continued).toBeLessThan(report?.totals.events ?? 0);
    expect((await verify(path)).problems).toEqual([]);
    const target = await installations.open();
    await importFrom(path, target);
    await expectSame(target);
  });

  it('is the same after an import that was killed twice and continued', async () => {
    await fill(source, 7);
    await appendFacts(source.eventStore, 6000);
    await exportTo(path, source);
    const dataDir = join(installations.folder, 'killed');
    for (const lines of [1, 2]) {
      const child = startChild('maintenance/children/importer', [path, dataDir]);
      await child.line((line) => line.startsWith('handled') && child.lines.length >= lines);
      await child.stop('SIGKILL');
    }
    const target = await installations.open(dataDir);
    expect((await readImportMarker(target.readStore))?.state).toBe('running');
    const before = (await wholeLog(target.eventStore)).length;
    expect(before).toBeGreaterThan(500);
    const report = await importFrom(path, target);
    expect(report?.skipped).toBeGreaterThanOrEqual(before);
    await expectSame(target);
    expect((await readImportMarker(target.readStore))?.state).toBe('done');
    // Importing it again changes nothing.
    expect(await importFrom(path, target)).toMatchObject({ written: false });
    await expectSame(target);
  });

  it('is imported again when the log was emptied, though not the read store', async () => {
    await fill(source, 13);
    await exportTo(path, source);
    const [target, emptied] = [await installations.open(), await installations.open()];
    await importFrom(path, target);
    const again = { ...emptied, readStore: target.readStore };
    expect(await importFrom(path, again)).toMatchObject({ written: true, skipped: 0 });
    await expectSame(again);
  });
});

it('an import is interrupted at once while it looks whether the target is empty', async () => {
  await fill(source, 14, 5);
  await exportTo(path, source);
  const target = await installations.open();
  const stop = new AbortController();
  async function* subscribe({ signal }: SubscribeOptions): AsyncGenerator<LogItem, void, void> {
    stop.abort();
    yield { kind: 'checkpoint', point: { commit: 1, prepare: 1 } };
    while (!signal.aborted) await nextTurn();
  }
  const slow = { ...target, eventStore: { ...target.eventStore, subscribe } };
  expect(await importFrom(path, slow, { signal: stop.signal })).toBeUndefined();
  expect([await wholeLog(target.eventStore), await readImportMarker(target.readStore)]).toEqual([[], undefined]);
});

describe('an import is refused', () => {
  beforeEach(async () => {
    await fill(source, 8, 10);
    await exportTo(path, source);
  });

  it('into stores that hold a log', async () => {
    const target = await installations.open();
    await fill(target, 9, 5);
    const before = await wholeLog(target.eventStore);
    await expect(importFrom(path, target)).rejects.toThrow(/not empty: its log has events in svc-/);
    expect(await wholeLog(target.eventStore)).toEqual(before);
  });

  it('into a read store that belongs to another log', async () => {
    const target = await installations.open();
    await target.readStore.saveCheckpoint(groupName, groupVersion, { commit: 5, prepare: 5, anchors: [] });
    await expect(importFrom(path, target)).rejects.toThrow(/not empty: its read store has the read_models/);
  });

  it('into stores that hold an unfinished import of another archive', async () => {
    const other = await installations.open();
    await fill(other, 10, 10);
    const second = join(installations.folder, 'second.jsonl');
    await exportTo(second, other);
    const target = await installations.open();
    const stop = new AbortController();
    expect(await importFrom(path, target, { signal: stop.signal, onProgress: () => stop.abort() })).toBeUndefined();
    await expect(importFrom(second, target)).rejects.toThrow(/unfinished import of another archive/);
  });

  it('when something else has written into the log since it began', async () => {
    const target = await installations.open();
    const stop = new AbortController();
    await importFrom(path, target, { signal: stop.signal, onProgress: () => stop.abort() });
    await append(target.eventStore, planned(streams.fleet, [{ type: 'CompilerVersionRaised', data: { version: 9 } }]));
    await expect(importFrom(path, target)).rejects.toThrow(/has written to this log/);
  });
});

describe('an export', () => {
  it('never overwrites a file', async () => {
    await fill(source, 11, 5);
    await exportTo(path, source);
    const before = await readFile(path);
    await expect(exportTo(path, source)).rejects.toThrow(/exists already/);
    expect(await readFile(path)).toEqual(before);
  });

  it('does not mix with another one to the same path', async () => {
    await fill(source, 15, 20);
    await appendFacts(source.eventStore, 3000);
    const outcomes = await Promise.allSettled([exportTo(path, source), exportTo(path, source), exportTo(path, source)]);
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(refused.length).toBeGreaterThanOrEqual(2);
    for (const { reason } of refused) expect(String(reason)).toMatch(/another export writes to/);
    if (refused.length === outcomes.length) await exportTo(path, source);
    expect((await verify(path)).problems).toEqual([]);
  });

  it('does not continue the export of another installation', async () => {
    await fill(source, 12, 5);
    await appendFacts(source.eventStore, 1500);
    const stop = new AbortController();
    const onProgress = (events: number): void => (events > 1300 ? stop.abort() : undefined);
    await exportTo(path, source, { signal: stop.signal, onProgress });
    await expect(exportTo(path, source, { installationId: 'another' })).rejects.toThrow(/another installation/);
  });
});
