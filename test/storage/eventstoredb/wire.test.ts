/** The test server's wire format is that of the client package, whose classes read and write the same bytes. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import * as messages from '../../servers/eventstoredb/messages.js';
import { requestsOf, type Labels, type Transcripts } from '../../servers/eventstoredb/transcript.js';
import { decode, encode, type Plain, type Schema } from '../../servers/eventstoredb/wire.js';

interface Generated {
  serializeBinary(): Uint8Array;
}
interface GeneratedClass {
  deserializeBinary(bytes: Uint8Array): Generated;
}
const generated = createRequire(import.meta.url)('@eventstore/db-client/generated/streams_pb.js') as Readonly<
  Record<string, GeneratedClass>
>;

const transcripts = JSON.parse(
  readFileSync(new URL('../../eventstoredb-transcripts.json', import.meta.url), 'utf8'),
) as Transcripts;
const requests: Readonly<Record<string, readonly [Schema, string]>> = {
  'Streams/Read': [messages.ReadReq, 'ReadReq'],
  'Streams/Append': [messages.AppendReq, 'AppendReq'],
  'Streams/Delete': [messages.DeleteReq, 'DeleteReq'],
  'Streams/Tombstone': [messages.DeleteReq, 'TombstoneReq'],
  'Streams/BatchAppend': [messages.BatchAppendReq, 'BatchAppendReq'],
};
const responses: Readonly<Record<string, readonly [Schema, string]>> = {
  'Streams/Read': [messages.ReadResp, 'ReadResp'],
  'Streams/Append': [messages.AppendResp, 'AppendResp'],
  'Streams/Delete': [messages.DeleteResp, 'DeleteResp'],
  'Streams/Tombstone': [messages.DeleteResp, 'TombstoneResp'],
};

/** Binds every label to a number, so that any message can be encoded. */
const anyLabels: Labels = new Map(Array.from({ length: 400 }, (_, index) => [`@${index}`, BigInt(index) * 2n ** 31n]));

function roundTrip(schema: Schema, name: string, plain: Plain): void {
  const bytes = encode(schema, plain);
  const again = Buffer.from(generated[name]!.deserializeBinary(bytes).serializeBinary());
  expect(again.length).toBe(bytes.length);
  // Maps have no order on the wire, so decoded messages are compared. Large ones are skipped to save time.
  if (bytes.length < 50_000) expect(decode(schema, again)).toEqual(decode(schema, bytes));
}

describe('the wire of the test server', () => {
  it('encodes every request of the transcripts like the generated classes', () => {
    let count = 0;
    for (const { steps } of transcripts.scenarios) {
      const methods = new Map<string, string>();
      for (const step of steps) {
        if (step.id !== undefined && step.method !== undefined) methods.set(step.id, step.method);
        const [schema, name] = requests[step.method ?? methods.get(step.id ?? '') ?? ''] ?? [];
        if (schema === undefined || name === undefined) continue;
        for (const plain of requestsOf(step.send ?? [], anyLabels)) {
          roundTrip(schema, name, plain);
          count += 1;
        }
      }
    }
    expect(count).toBeGreaterThan(1000);
  });

  it('encodes the answers of the transcripts like the generated classes', () => {
    let count = 0;
    for (const step of transcripts.scenarios.flatMap(({ steps }) => steps)) {
      const [schema, name] = responses[step.method ?? ''] ?? [];
      if (schema === undefined || name === undefined) continue;
      for (const message of step.answer?.recv ?? []) {
        // The generated classes cannot encode one legacy value.
        const text = JSON.stringify(message).replaceAll('18446744073709551615', '5').replaceAll('<ticks>', '17');
        if (text.includes('9223372036854775807')) continue;
        const [plain] = requestsOf([JSON.parse(text)], anyLabels);
        roundTrip(schema, name, plain!);
        count += 1;
      }
    }
    expect(count).toBeGreaterThan(200);
  });
});
