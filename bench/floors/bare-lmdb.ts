/**
 * The floor of the embedded stores: groups of events appended as text in one durable transaction each, and a range read
 * of events in MessagePack. No revisions, no subscription.
 */
import { open } from 'lmdb';
import type { RecordedEvent } from '../../src/kernel/event.js';
import { answerParent } from '../child.js';
import type { Walked } from '../processes/adapter.js';
import type { BareAppends } from './bare-eventstoredb.js';
import { openBareLog } from './bare-log.js';

const [folder = ''] = process.argv.slice(2);
const log = openBareLog(`${folder}/log`);
const events = open<RecordedEvent, number>({
  path: `${folder}/events`,
  encoding: 'msgpack',
  sharedStructuresKey: Symbol.for('structures'),
});

async function appends({ group, forMs, sample }: BareAppends): Promise<number> {
  const began = performance.now();
  const until = began + forMs;
  let appended = 0;
  while (performance.now() < until) {
    await Promise.all(Array.from({ length: group }, () => log.append(sample)));
    appended += group;
  }
  return (appended * 1000) / (performance.now() - began);
}

/** Writes `count` copies of the sample for the range read. */
async function fill({ count, sample }: { readonly count: number; readonly sample: string }): Promise<void> {
  const event = JSON.parse(sample) as RecordedEvent;
  let written: Promise<unknown> = Promise.resolve();
  for (let revision = 0; revision < count; revision += 1) {
    written = events.put(revision, { ...event, stream: 'svc-fleet', revision, position: revision });
    if (revision % 10_000 === 0) await written;
  }
  await written;
}

function read(): Walked {
  const began = performance.now();
  let count = 0;
  for (const { value } of events.getRange({ start: 0 })) if (value.revision >= 0) count += 1;
  return { events: count, ms: performance.now() - began };
}

answerParent({ appends, fill, read });
