/**
 * A process that appends as fast as it can and prints each acknowledged append as one line, until it is killed.
 * Arguments: data folder. First line: `open`. Then `<stream> <revision> <position> <command id>` per acknowledged
 * append.
 */
import { writeSync } from 'node:fs';
import { systemClock } from '../../../src/kernel/clock.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { openEmbedded } from '../../../src/storage/embedded/open-embedded.js';
import { lastRevision } from '../../../src/storage/event-store.js';
import { commandOf } from '../contract/appending.js';

const dataDir = process.argv[2] ?? '';
const { eventStore, readStore } = await openEmbedded({ dataDir, clock: systemClock, logger: silentLogger });
const documents = await readStore.collection({ name: 'seen', version: 1, index: { group: 'all', order: 'n' } });
writeSync(1, 'open\n');

async function appendForEver(stream: string): Promise<void> {
  let head = await lastRevision(eventStore, stream);
  for (let round = 0; ; round += 1) {
    const events = commandOf(1 + (round % 9), { text: 'x'.repeat(200) });
    const outcome = await eventStore.append(stream, head ?? 'no_stream', events);
    if (outcome.kind !== 'appended') throw new Error(`${stream}: ${JSON.stringify(outcome)}`);
    head = outcome.revision;
    writeSync(1, `${stream} ${outcome.revision} ${outcome.position ?? -1} ${events[0]?.metadata.command.id ?? ''}\n`);
  }
}

async function writeForEver(): Promise<void> {
  let n = (await documents.find({ groups: ['all'], direction: 'desc', limit: 1 }))[0]?.position ?? 0;
  for (;;) {
    n += 1;
    const fields = { all: 'all', n: String(n).padStart(9, '0') };
    await documents.write([{ id: `id-${n % 50}`, position: n, fields }]);
    writeSync(1, `document ${n}\n`);
  }
}

await Promise.all([...Array.from({ length: 8 }, (_, index) => appendForEver(`svc-${index}`)), writeForEver()]);
