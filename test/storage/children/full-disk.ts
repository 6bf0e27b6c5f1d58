/**
 * A process that appends, writes documents, reads and pings in turn and prints each outcome, while the test limits the
 * size of its files. Arguments: data folder. Lines: `open`, `<outcome> <command id>`, `document <outcome> <n>`,
 * `read <events>`, `ping <outcome>`.
 */
import { writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../../src/kernel/clock.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { openEmbedded } from '../../../src/storage/embedded/open-embedded.js';
import { lastRevision } from '../../../src/storage/event-store.js';
import { commandOf, readAll } from '../contract/appending.js';

const say = (line: string): number => writeSync(1, `${line}\n`);
// An unhandled rejection would end the service, so it must be visible here.
process.on('unhandledRejection', (error) => {
  say(`unhandled ${String(error)}`);
  process.exit(3);
});

const dataDir = process.argv[2] ?? '';
const { eventStore, readStore } = await openEmbedded({ dataDir, clock: systemClock, logger: silentLogger });
const documents = await readStore.collection({
  name: 'seen',
  version: 1,
  index: { group: 'names', order: 'n' },
});
say('open');

const attempt = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work;
    return 'done';
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
};

for (let round = 1; ; round += 1) {
  const appends = Array.from({ length: 4 }, async (_, index) => {
    const stream = `svc-${index}`;
    const events = commandOf(3, { text: 'x'.repeat((round * 977 + index * 2111) % 20_000) });
    const head = await lastRevision(eventStore, stream);
    const outcome = await eventStore.append(stream, head ?? 'no_stream', events);
    say(`${outcome.kind} ${events[0]?.metadata.command.id ?? ''} ${stream}`);
  });
  await Promise.all(appends);
  const writes = Array.from({ length: 1 + (round % 40) }, (_, index) => ({
    kind: 'put' as const,
    id: `id-${index === 0 ? round : `${round % 7}-${(index * 7919) % 500}`}`,
    position: round,
    fields: {
      n: String(round).padStart(9, '0'),
      names: ['all', `${(index * 31) % 1000}`.repeat(20)],
      text: 'y'.repeat((round * 37 + index * 511) % 9000),
    },
  }));
  const wrote = await attempt(documents.write(writes));
  say(`document ${wrote} ${round}`);
  say(`read ${(await readAll(eventStore, 'svc-0')).length} ${await documents.count({ groups: ['all'] })}`);
  say(`ping ${await attempt(eventStore.ping())} ${await attempt(readStore.ping())}`);
  await delay(5);
}
