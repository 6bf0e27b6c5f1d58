/** Damage of an archive is found before anything behind it is used; faults of a log are reported. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allStreams, streams, type RecordedEvent } from '../../src/kernel/event.js';
import { createLogCheck } from '../../src/storage/log-archive/log-check.js';
import { verifyArchive, verifyLog } from '../../src/storage/log-archive/verify-log.js';
import { logCheck } from '../../src/backups/archive-scope.js';
import { goldenLog } from '../support/golden-log.js';
import {
  appendFacts,
  createInstallations,
  exportTo,
  fill,
  importFrom,
  wholeLog,
  type Installations,
  type TestInstallation,
} from '../support/installations.js';
import { append, planned } from '../support/read-side.js';

let installations: Installations;
let source: TestInstallation;
/** The same log as archives of one block, and of several. */
let small: Buffer;
let good: Buffer;
beforeAll(async () => {
  installations = createInstallations();
  source = await installations.open();
  const exported = async (name: string): Promise<Buffer> => {
    const path = join(installations.folder, name);
    await exportTo(path, source);
    return readFileSync(path);
  };
  await fill(source, 21, 30);
  small = await exported('small.jsonl');
  await appendFacts(source.eventStore, 1800);
  good = await exported('good.jsonl');
});
afterAll(() => installations.close());

const signal = new AbortController().signal;

async function problemsOf(bytes: Uint8Array): Promise<readonly string[]> {
  const file = join(installations.folder, 'changed.jsonl');
  writeFileSync(file, bytes);
  const { problems } = await verifyArchive(file, { check: logCheck, signal, onProgress: () => undefined });
  return problems;
}

describe('an archive', () => {
  it('has no problem as it was written', async () => {
    expect(await problemsOf(good)).toEqual([]);
  });

  it('is reported as damaged when any single byte is changed', async () => {
    const change = fc.record({ at: fc.nat(good.length - 1), by: fc.integer({ min: 1, max: 255 }) });
    await fc.assert(
      fc.asyncProperty(change, async ({ at, by }) => {
        const bytes = Buffer.from(good);
        bytes[at] = (bytes[at]! + by) % 256;
        expect(await problemsOf(bytes)).not.toEqual([]);
      }),
      { numRuns: 15 },
    );
  });

  it('is reported as damaged when any byte of its last lines is changed', async () => {
    for (let at = small.length - 700; at < small.length; at += 17) {
      const bytes = Buffer.from(small);
      bytes[at] = (bytes[at]! + 1) % 256;
      expect(await problemsOf(bytes)).not.toEqual([]);
    }
  });

  it('is reported as damaged wherever it is cut off', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(good.length - 1), async (length) => {
        expect(await problemsOf(good.subarray(0, length))).not.toEqual([]);
      }),
      { numRuns: 10 },
    );
  });

  it('is reported as damaged when whole lines or blocks are missing, doubled or in another order', async () => {
    const lines = good.toString('utf8').split('\n').slice(0, -1);
    const block = lines.findIndex((line) => line.startsWith('{"kind":"block"'));
    const second = lines.findIndex((line, index) => index > block && line.startsWith('{"kind":"block"'));
    expect(second).toBeGreaterThan(block);
    const text = (changed: readonly string[]): Buffer => Buffer.from(`${changed.join('\n')}\n`);
    const changes = [
      lines.toSpliced(40, 1),
      lines.toSpliced(40, 0, lines[40]!),
      lines.toSpliced(40, 2, lines[41]!, lines[40]!),
      // A block with its checksum.
      lines.toSpliced(block + 1, second - block),
      [...lines, ''],
      [...lines, lines[40]!],
      lines.slice(1),
    ];
    for (const changed of changes) expect(await problemsOf(text(changed))).not.toEqual([]);
  });

  it('that is damaged is refused with the line, and no event behind that line is imported', async () => {
    const bytes = Buffer.from(good);
    const at = good.length >> 1;
    bytes[at] = bytes[at]! ^ 1;
    const [problem] = await problemsOf(bytes);
    expect(problem).toMatch(/^line \d+: /);
    const target = await installations.open();
    const file = join(installations.folder, 'changed.jsonl');
    await expect(importFrom(file, target)).rejects.toThrow(/^line \d+: /);
    const written = await wholeLog(target.eventStore);
    const original = await wholeLog(source.eventStore);
    expect(written.length).toBeLessThan(original.length);
    expect(written.map(({ events }) => events[0].id)).toEqual(
      original.slice(0, written.length).map(({ events }) => events[0].id),
    );
  });

  it('is refused when it has a newer format or is something else', async () => {
    const lines = good.toString('utf8').split('\n');
    const header = { ...(JSON.parse(lines[0]!) as object), version: 2 };
    expect(await problemsOf(Buffer.from([JSON.stringify(header), ...lines.slice(1)].join('\n')))).toEqual([
      'line 1: the archive has format version 2; this release reads up to 1',
    ]);
    expect(await problemsOf(Buffer.from('{"a":1}\n'))).toEqual(['line 1: this is not a log archive: it has no header']);
    expect(await problemsOf(Buffer.from('no JSON'))).toEqual(['line 1: not a JSON object']);
    expect(await problemsOf(Buffer.from(''))).not.toEqual([]);
  });
});

describe('a log', () => {
  const log = goldenLog();
  const problems = (events: readonly RecordedEvent[]): readonly string[] => {
    const check = createLogCheck(logCheck);
    for (const event of events) check.add(event);
    check.end();
    return check.problems;
  };
  const fleet = log.filter(({ stream }) => stream === streams.fleet);
  const large = fleet.findIndex(({ metadata }) => metadata.command.count > 1);

  it('has no problem when nothing is wrong', () => {
    expect(problems(log)).toEqual([]);
  });

  it('is reported when it lacks a revision', () => {
    expect(problems(fleet.toSpliced(3, 1))[0]).toMatch(/svc-fleet lacks its revisions 3 to 3/);
    expect(problems(fleet.slice(2))[0]).toMatch(/svc-fleet lacks its revisions 0 to 1/);
  });

  it('has no problem when it lacks old facts', () => {
    const facts = log.filter(({ stream }) => stream.startsWith(streams.agentsPrefix));
    expect(problems(facts.slice(2))).toEqual([]);
  });

  it('is reported when an event comes twice or positions do not grow', () => {
    expect(problems(fleet.toSpliced(4, 0, fleet[3]!)).join('\n')).toMatch(/svc-fleet@3 is repeated/);
    const back = fleet.map((event, index) => (index === 5 ? { ...event, position: 1 } : event));
    expect(problems(back)).toEqual(['the position 1 of svc-fleet@5 is not above 500']);
  });

  it('is reported when a command is not whole', () => {
    expect(large).toBeGreaterThan(0);
    const { count } = fleet[large]!.metadata.command;
    expect(problems(fleet.slice(0, large + 1))).toEqual(['the log ends in the middle of a command']);
    const without = fleet.toSpliced(large + count - 1, 1);
    expect(problems(without).join('\n')).toMatch(/has \d+ of \d+ events before svc-fleet at revision \d+/);
    expect(problems(fleet.toSpliced(large, 1)).join('\n')).toMatch(/begins with its event 1$/m);
  });

  it('is reported when this release does not know an event, and is exported all the same', async () => {
    const store = await installations.open();
    await fill(store, 22, 5);
    await append(store.eventStore, planned(streams.fleet, [{ type: 'FromTheFuture', data: {} }]));
    const options = { streams: allStreams, check: logCheck, signal, onProgress: () => undefined };
    const report = await verifyLog(store.eventStore, options);
    expect(report.problems).toEqual([expect.stringMatching(/FromTheFuture .* is not known to this release/)]);
    const exported = await exportTo(join(installations.folder, 'future.jsonl'), store);
    expect(exported?.problems).toHaveLength(1);
  });

  it('has another digest when its content differs, but not when its positions do', () => {
    const digest = (events: readonly RecordedEvent[]): string => {
      const check = createLogCheck(logCheck);
      for (const event of events) check.add(event);
      return check.summary().contentSha256;
    };
    const moved = log.map((event) => ({ ...event, position: event.position * 7 }));
    expect(digest(moved)).toBe(digest(log));
    const changed = log.map((event, index) => (index === 7 ? { ...event, data: { ...event.data, name: 'x' } } : event));
    expect(digest(changed)).not.toBe(digest(log));
    expect(digest(log.slice(1))).not.toBe(digest(log));
  });
});
