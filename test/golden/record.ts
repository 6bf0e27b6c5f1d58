/**
 * Records the golden log and the golden data folder of format 1: `npx tsx test/golden/record.ts`, after a run of their
 * test, which compiles the service. Once the format is released, nobody runs this again: later releases are held to what
 * it wrote.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { prepareService } from '../../scripts/stack/service.js';
import { goldenLog } from '../support/golden-log.js';
import { answersOf, fillFleet, golden, meaningOf, packedFiles } from './format-1.js';

const log = goldenLog();
writeFileSync(join(golden, 'log.jsonl'), log.map((event) => `${JSON.stringify(event)}\n`).join(''));
writeFileSync(join(golden, 'meaning.json'), `${JSON.stringify(meaningOf(log), null, 2)}\n`);

const root = mkdtempSync(join(tmpdir(), 'format-1-'));
const dataDir = join(root, 'data');
const service = await prepareService({ dataDir });
try {
  await service.start();
  const admin = await service.admin();
  await fillFleet(admin);
  writeFileSync(join(golden, 'answers.json'), `${JSON.stringify(await answersOf(admin), null, 2)}\n`);
} finally {
  await service.stop();
}
rmSync(join(golden, 'folder'), { recursive: true, force: true });
for (const file of packedFiles(dataDir)) {
  mkdirSync(join(golden, 'folder', file, '..'), { recursive: true });
  writeFileSync(join(golden, 'folder', `${file}.gz`), gzipSync(readFileSync(join(dataDir, file)), { level: 9 }));
}
rmSync(root, { recursive: true, force: true });
