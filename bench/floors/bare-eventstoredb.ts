/**
 * The floor of EventStoreDB: its plain client. Awaited appends to one stream, and a subscription to all streams of a
 * prefix whose events are counted. No retries, no domain.
 */
import { randomUUID } from 'node:crypto';
import {
  EventStoreDBClient,
  jsonEvent,
  START,
  streamNameFilter,
  type EventData,
  type ResolvedEvent,
} from '@eventstore/db-client';
import { answerParent } from '../child.js';
import type { Walked } from '../processes/adapter.js';

export interface BareAppends {
  /** Events per append. */
  readonly group: number;
  readonly forMs: number;
  /** JSON of an event; each appended event has its content. */
  readonly sample: string;
}

const [url = ''] = process.argv.slice(2);
const client = EventStoreDBClient.connectionString(url);
const stream = `bare-${randomUUID()}`;
const searchWindow = 5_000;
const silenceMs = 60_000;
let head: bigint | 'no_stream' = 'no_stream';

async function appends({ group, forMs, sample }: BareAppends): Promise<number> {
  const { type, data, metadata } = JSON.parse(sample) as EventData;
  const began = performance.now();
  const until = began + forMs;
  let events = 0;
  while (performance.now() < until) {
    const batch = Array.from(
      { length: group },
      () => jsonEvent({ id: randomUUID(), type, data, metadata } as never) as EventData,
    );
    const { nextExpectedRevision } = await client.appendToStream(stream, batch, { expectedRevision: head });
    head = nextExpectedRevision;
    events += group;
  }
  return (events * 1000) / (performance.now() - began);
}

function subscribe(expected: number): Promise<Walked> {
  const filter = streamNameFilter({ prefixes: ['svc-'], maxSearchWindow: searchWindow, checkpointInterval: 1 });
  const began = performance.now();
  const subscription = client.subscribeToAll({ fromPosition: START, filter });
  let events = 0;
  return new Promise<Walked>((resolve, reject) => {
    const silent = setTimeout(() => reject(new Error(`only ${events} of ${expected} events arrived`)), silenceMs);
    subscription.on('error', reject);
    subscription.on('data', (_: ResolvedEvent) => {
      events += 1;
      silent.refresh();
      if (events < expected) return;
      clearTimeout(silent);
      resolve({ events, ms: performance.now() - began });
    });
  }).finally(() => void subscription.unsubscribe());
}

answerParent({ appends, subscribe });
