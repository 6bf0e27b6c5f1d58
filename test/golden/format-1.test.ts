/**
 * The log and the data folder of format 1 are read with the meaning that they had when they were recorded
 * (`docs/contract/domain.md#commands-and-events`).
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { prepareService } from '../../scripts/stack/service.js';
import { readEvent, schemaVersions } from '../../src/domain/log/upcast.js';
import type { RecordedEvent } from '../../src/kernel/event.js';
import { proof } from '../support/proof.js';
import { answersOf, golden, meaningOf, packedFiles } from './format-1.js';

const recorded = (file: string): unknown => JSON.parse(readFileSync(join(golden, file), 'utf8'));
const eventsOf = (file: string): readonly RecordedEvent[] =>
  readFileSync(join(golden, file), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as RecordedEvent);
const events = eventsOf('log.jsonl');
/** One event of each type that was added to format 1 since it was frozen. */
const additions = eventsOf('additions.jsonl');

describe('the golden log', () => {
  it('folds to the recorded meaning', () => {
    expect(meaningOf(events)).toEqual(recorded('meaning.json'));
  });

  it('has, with its additions, every event type in its current schema version, and no other', () => {
    const recordedEvents = [...events, ...additions];
    const written = new Set(recordedEvents.map(({ type, metadata }) => `${type}@${metadata.schema_version}`));
    const current = Object.entries(schemaVersions).map(([type, version]) => `${type}@${version}`);
    expect([...written].sort(), 'a new type is added to additions.jsonl').toEqual(current.sort());
    for (const event of recordedEvents) expect(readEvent(event)).toEqual(event);
  });
});

describe('the golden data folder', () => {
  it('is proven, and answers all that it did when it was recorded', { timeout: 60_000 }, async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'format-1-'));
    for (const file of packedFiles(join(golden, 'folder'))) {
      const path = join(dataDir, file.replace(/\.gz$/, ''));
      mkdirSync(join(path, '..'), { recursive: true, mode: 0o700 });
      writeFileSync(path, gunzipSync(readFileSync(join(golden, 'folder', file))), { mode: 0o600 });
    }
    expect((await proof(dataDir)).problems).toEqual([]);
    const service = await prepareService({ dataDir });
    try {
      await service.start();
      const admin = await service.admin();
      await expect.poll(() => answersOf(admin), { timeout: 20_000 }).toMatchObject(recorded('answers.json') as object);
    } finally {
      await service.stop();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});
