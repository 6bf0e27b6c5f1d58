/**
 * The service decodes events exactly as the client package would, and leaves unusual messages to it. Fails when a newer
 * package can no longer be bypassed.
 */
import { createRequire } from 'node:module';
import { EventStoreDBClient, START, streamNameFilter, type ResolvedEvent } from '@eventstore/db-client';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { toRecordedEvent } from '../../../src/storage/eventstoredb/events.js';
import { subscribeLean, type LeanEvent } from '../../../src/storage/eventstoredb/lean-subscription.js';
import { readEventOf } from '../../../src/storage/eventstoredb/read-event.js';
import * as messages from '../../servers/eventstoredb/messages.js';
import { encode, type Plain } from '../../servers/eventstoredb/wire.js';
import { commandOf } from '../contract/appending.js';
import { openFixture, writeForeign } from './fixture.js';

interface ReadResp {
  hasEvent(): boolean;
  getEvent(): object;
}
const load = createRequire(import.meta.url);
const { ReadResp } = load('@eventstore/db-client/generated/streams_pb.js') as {
  ReadResp: { deserializeBinary(bytes: Uint8Array): ReadResp };
};
const { convertGrpcEvent } = load('@eventstore/db-client/dist/utils/convertGrpcEvent.js') as {
  convertGrpcEvent(event: object): ResolvedEvent;
};

/** The event of a message as decoded by the client package. */
function byTheClient(bytes: Buffer): ReturnType<typeof toRecordedEvent> {
  const response = ReadResp.deserializeBinary(bytes);
  return response.hasEvent() ? toRecordedEvent(convertGrpcEvent(response.getEvent())) : undefined;
}

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const plainEvent = (changes: Plain = {}): Plain => ({
  id: { string: '11111111-2222-4333-8444-555555555555' },
  streamIdentifier: { streamName: 'svc-fleet' },
  streamRevision: '7',
  preparePosition: '900',
  commitPosition: '900',
  metadata: { type: 'NodeCreated', 'content-type': 'application/json', created: '638000000000000000' },
  customMetadata: json({ command: { id: 'c', index: 0, count: 1 } }),
  data: json({ name: 'a' }),
  ...changes,
});
const message = (event: Plain, around: Plain = { commitPosition: '900' }): Buffer =>
  Buffer.from(encode(messages.ReadResp, { event: { event, ...around } }));

it('decodes every event of this service as the client package does', () => {
  const number = fc.bigInt({ min: 0n, max: 2n ** 53n - 1n }).map(String);
  const object = fc.dictionary(fc.string(), fc.jsonValue());
  const event = fc.record({
    id: fc.uuid().map((string) => ({ string })),
    streamIdentifier: fc.string({ unit: 'grapheme', minLength: 1 }).map((name) => ({ streamName: `svc-${name}` })),
    streamRevision: number,
    preparePosition: number,
    commitPosition: number,
    metadata: fc
      .stringMatching(/^[A-Z]\w*$/)
      .map((type) => ({ type, 'content-type': 'application/json', created: '1' })),
    customMetadata: object.map(json),
    data: object.map(json),
  });
  fc.assert(
    fc.property(event, fc.boolean(), (plain, positioned) => {
      const bytes = message(plain, positioned ? { commitPosition: plain.commitPosition } : { noPosition: {} });
      const decoded = readEventOf(bytes);
      expect(decoded).toBeDefined();
      expect(decoded).toEqual(byTheClient(bytes));
    }),
  );
});

const unusual: { readonly [what: string]: Buffer } = {
  'an id in two halves': message(
    plainEvent({ id: { structured: { mostSignificantBits: '1', leastSignificantBits: '2' } } }),
  ),
  bytes: message(plainEvent({ metadata: { type: 'A', 'content-type': 'application/octet-stream' } })),
  'an event of the server': message(
    plainEvent({ metadata: { type: '$metadata', 'content-type': 'application/json' } }),
  ),
  'a stream of the server': message(plainEvent({ streamIdentifier: { streamName: '$$svc-fleet' } })),
  'an event without a type': message(plainEvent({ metadata: { 'content-type': 'application/json' } })),
  'an event without metadata': message(plainEvent({ customMetadata: new Uint8Array() })),
  'data that is no JSON': message(plainEvent({ data: Buffer.from('{') })),
  'the revision of a tombstone': message(plainEvent({ streamRevision: `${2n ** 63n - 1n}` })),
  'a position of 2^53': message(plainEvent({ commitPosition: `${2n ** 53n}` })),
  'an event that a link points to': message(plainEvent(), { link: plainEvent(), commitPosition: '900' }),
  'a link to nothing': Buffer.from(encode(messages.ReadResp, { event: { link: plainEvent() } })),
  'a checkpoint': Buffer.from(encode(messages.ReadResp, { checkpoint: { commitPosition: '1', preparePosition: '1' } })),
  'the end of catching up': Buffer.from(encode(messages.ReadResp, { caughtUp: {} })),
};
for (const [what, bytes] of Object.entries(unusual)) {
  it(`leaves ${what} to the client package`, () => expect(readEventOf(bytes)).toBeUndefined());
}

it('leaves a truncated or corrupt message to the client package, and never throws', () => {
  const whole = message(plainEvent());
  for (let length = 0; length < whole.length; length += 1) {
    expect(readEventOf(whole.subarray(0, length))).toBeUndefined();
  }
  fc.assert(
    fc.property(fc.nat(whole.length - 1), fc.nat(255), (at, byte) => {
      const spoiled = Buffer.from(whole);
      spoiled[at] = byte;
      expect(() => readEventOf(spoiled)).not.toThrow();
    }),
  );
});

it("decodes this service's events of a real subscription, and leaves the others to the client package", async () => {
  const fixture = await openFixture();
  const client = EventStoreDBClient.connectionString(fixture.server.url);
  try {
    await fixture.store.append('svc-a', 'no_stream', commandOf(3));
    writeForeign(fixture.server, 1, 'svc-b');
    await client.deleteStream('svc-b');
    await client.tombstoneStream('svc-b');
    const filter = streamNameFilter({ prefixes: ['svc-'], checkpointInterval: 1 });
    const subscription = subscribeLean(client, { fromPosition: START, filter });
    const seen = await new Promise<LeanEvent[]>((resolve, reject) => {
      const events: LeanEvent[] = [];
      subscription.on('error', reject);
      subscription.on('data', (event: LeanEvent) => {
        if (events.push(event) === 5) resolve(events);
      });
    });
    await subscription.unsubscribe();
    expect(seen.map(({ ours }) => ours?.stream)).toEqual(['svc-a', 'svc-a', 'svc-a', undefined, undefined]);
    expect(seen.map(({ event }) => event?.type)).toEqual([
      undefined,
      undefined,
      undefined,
      'Foreign',
      '$streamDeleted',
    ]);
    // Other calls of the same client are unchanged.
    for await (const { event } of client.readStream('svc-a', { maxCount: 1 })) expect(event?.streamId).toBe('svc-a');
  } finally {
    await client.dispose();
    await fixture.close();
  }
}, 60_000);
