/**
 * A separate process, for its own memory and time, that reads the log of a data folder: through the committed fleet of
 * delivery, or bare, as a range read of the same events in MessagePack.
 */
import { open } from 'lmdb';
import { openCommittedFleet } from '../../src/projections/fleet/committed-fleet.js';
import { streams, type RecordedEvent } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { followInMemory } from '../../src/projections/log-follower.js';
import { ownEvent } from '../../src/storage/broken-log.js';
import { lastRevision } from '../../src/storage/event-store.js';
import { answerParent } from '../child.js';
import { writeFleetLog } from '../fleet-log.js';
import { withInstallation } from '../installation.js';

const [dataDir = '', bareDir = ''] = process.argv.slice(2);

export interface Replayed {
  readonly events: number;
  readonly ms: number;
  readonly peakBytes: number;
}

const peakBytes = (): number => process.resourceUsage().maxRSS * 1024;

const openBare = () =>
  open<RecordedEvent, number>({ path: bareDir, encoding: 'msgpack', sharedStructuresKey: Symbol.for('structures') });

/** Writes the log, and a copy of its events for the bare read. */
async function write(events: number): Promise<number> {
  return withInstallation(dataDir, async ({ eventStore, logChain }) => {
    await writeFleetLog({ eventStore, logChain }, events);
    const bare = openBare();
    let written: Promise<unknown> = Promise.resolve();
    const all = eventStore.read(streams.fleet, {
      direction: 'forward',
      from: 'start',
      maxCount: Number.MAX_SAFE_INTEGER,
    });
    for await (const stored of all) {
      const event = ownEvent(stored);
      written = bare.put(event.revision, event);
      if (event.revision % 10_000 === 0) await written;
    }
    await written;
    await bare.close();
    return ((await lastRevision(eventStore, streams.fleet)) ?? -1) + 1;
  });
}

async function fold(): Promise<Replayed> {
  return withInstallation(dataDir, async ({ eventStore, logChain }) => {
    const head = (await lastRevision(eventStore, streams.fleet)) ?? -1;
    const began = performance.now();
    const folded = await openCommittedFleet({ eventStore, logger: silentLogger, logChain });
    const checkpointEvery = Number.MAX_SAFE_INTEGER;
    const follower = followInMemory({ eventStore, logger: silentLogger, folds: [folded], checkpointEvery });
    const reached = await folded.until(() => folded.fleet().revision.value >= head, 600_000);
    const ms = performance.now() - began;
    await follower.close();
    folded.close();
    if (!reached) throw new Error('the fold did not reach the head of the log in 10 minutes');
    return { events: head + 1, ms, peakBytes: peakBytes() };
  });
}

async function bareRead(): Promise<Replayed> {
  const log = openBare();
  const began = performance.now();
  let events = 0;
  for (const { value } of log.getRange({ start: 0 })) if (value.revision >= 0) events += 1;
  const ms = performance.now() - began;
  await log.close();
  return { events, ms, peakBytes: peakBytes() };
}

/** Stores a checkpoint of an unknown version, so that the next start replays the log. */
async function spoilCheckpoint(): Promise<void> {
  const spoiled = { foldVersion: 0, revision: 0, position: 0, sha256: '', bytes: Buffer.from('-') };
  await withInstallation(dataDir, ({ eventStore }) => eventStore.saveFoldCheckpoint(streams.fleet, spoiled));
}

answerParent({ write, fold, bareRead, spoilCheckpoint });
