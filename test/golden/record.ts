/**
 * Recorded the golden log and the golden data folder of format 1, which is frozen: later releases are held to what it wrote,
 * and this program writes into no folder that exists. A release with another format records its own, beside this one, by
 * a clock of long ago, so that no machine's clock is behind what was recorded: after a run of the test, which compiles the
 * service, `faketime -f '@2020-01-01 00:00:00' npx tsx test/golden/record.ts FOLDER`.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { prepareService } from '../../scripts/stack/service.js';
import { goldenLog } from '../support/golden-log.js';
import { answersOf, fillFleet, meaningOf, packedFiles } from './format-1.js';

const [golden] = process.argv.slice(2);
if (golden === undefined || existsSync(golden)) throw new Error('expected the name of a folder that does not exist yet');
mkdirSync(golden, { recursive: true });

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
for (const file of packedFiles(dataDir)) {
  mkdirSync(join(golden, 'folder', file, '..'), { recursive: true });
  writeFileSync(join(golden, 'folder', `${file}.gz`), gzipSync(readFileSync(join(dataDir, file)), { level: 9 }));
}
rmSync(root, { recursive: true, force: true });
