/**
 * Heartbeats whose tables are not decoded: taken, refused, charged and shown exactly as decoded ones
 * (`docs/contract/agent-protocol.md#heartbeats-commands-metrics`).
 */
import fc from 'fast-check';
import type { Arbitrary } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HeartbeatRequest, RuntimeListener } from '../../src/gen/svc/control/v1/heartbeat.js';
import { AgentPayload } from '../../src/gen/svc/control/v1/session.js';
import { linksIn, listenersIn } from '../../src/telemetry/reported-tables.js';
import { readAgentPayload } from '../../src/transport/agent/agent-payload.js';
import type { ValidTables } from '../../src/transport/agent/agent-payload.js';
import { readPlainHeartbeat } from '../../src/transport/agent/plain-heartbeat.js';
import { isWellFormed } from '../../src/transport/agent/wire-scan.js';

const encoded = (value: HeartbeatRequest): Buffer =>
  Buffer.from(AgentPayload.encode({ payload: { $case: 'heartbeat', value } }).finish());
/** A field of a later release beside the heartbeat: such a payload is always decoded. */
const laterField = Buffer.of((15 << 3) | 0, 1);

/** What becomes of a payload: the verdict, the charge, and all that anybody is ever shown of it. */
function outcome(bytes: Uint8Array, known?: ValidTables): unknown {
  const read = readAgentPayload(bytes, 'node-1', known);
  if (read.kind !== 'message' || read.message.$case !== 'heartbeat') return read;
  const { linkMetrics, runtimeListeners, ...figures } = read.message.value;
  const shown = { links: linksIn(linkMetrics.bytes), listeners: listenersIn(runtimeListeners.bytes) };
  return { entries: read.entries, figures, shown };
}

const text = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom(341, 342, 1_024, 1_025).map((length) => 'x'.repeat(length)),
  fc.constantFrom(341, 342).map((length) => '\u20ac'.repeat(length)),
);
const counter = fc.oneof(fc.bigInt(0n, 300n), fc.bigInt(0n, 2n ** 64n - 1n));
const maybe = <T>(value: Arbitrary<T>): Arbitrary<T | undefined> => fc.option(value, { nil: undefined });
const number = fc.oneof(fc.double(), fc.constant(0));
const port = fc.oneof({ weight: 8, arbitrary: fc.nat(65_535) }, fc.integer());

const route = fc.record({
  service: text,
  payload: text,
  outer: text,
  security: text,
  matchKind: text,
  matchValue: text,
  nextHop: text,
});
const listener = fc.record({
  transport: text,
  listenAddr: text,
  listenPort: port,
  state: text,
  routes: fc.array(route, { maxLength: 3 }),
  bytesIn: maybe(counter),
  bytesOut: maybe(counter),
  activeSessions: maybe(counter),
  totalSessions: maybe(counter),
  errorSessions: maybe(counter),
});
const link = fc.record({
  resourceType: text,
  resourceId: text,
  peerNodeId: text,
  peerEndpoint: text,
  outer: fc.constantFrom(0, 1, 2, 3, 4, 99, -1) as Arbitrary<0>,
  rttMs: maybe(number),
  jitterMs: maybe(number),
  lossRatio: maybe(number),
  bytesIn: counter,
  bytesOut: counter,
  activeSessions: counter,
});
const heartbeat: Arbitrary<HeartbeatRequest> = fc.record({
  nodeId: fc.constantFrom('', 'node-1', 'node-1', 'node-2'),
  sequence: counter,
  timestamp: maybe(fc.record({ seconds: fc.bigInt(-(2n ** 40n), 2n ** 40n), nanos: fc.nat(999_999_999) })),
  cpuUsage: number,
  memoryUsage: number,
  uptimeSeconds: counter,
  linkMetrics: fc.array(link, { maxLength: 3 }),
  runtimeListeners: fc.array(listener, { maxLength: 4 }),
});

type Alteration = (bytes: Buffer) => Buffer;
const place = fc.double({ min: 0, max: 0.999, noNaN: true });
/** Bytes that mean something: tags of each level, lengths, texts that are no UTF-8, numbers out of bounds. */
const meaningful = [
  '4200',
  '3a00',
  '1a00',
  '1a0108',
  '2a00',
  '0a0141',
  '0a02c328',
  '18ffffffffffffffffff01',
  '10ffffffffffffffffff01',
  '30ffffffffffffffffff7f',
  '18808004',
  '21000000000000f07f',
  'f87f01',
  'fa7f03414243',
  '420a0a03efbbbf1203c3283118bb03',
  '00',
  '0b',
  '0c',
  'ffffffffffffffffff01',
];
const alteration: Arbitrary<Alteration> = fc.oneof(
  fc.tuple(place, fc.integer({ min: 1, max: 255 })).map(([at, bits]) => (bytes: Buffer) => {
    const altered = Buffer.from(bytes);
    const index = Math.floor(at * altered.length);
    if (altered.length > 0) altered[index] = altered[index]! ^ bits;
    return altered;
  }),
  place.map((at) => (bytes: Buffer) => bytes.subarray(0, Math.floor(at * bytes.length))),
  fc.tuple(place, fc.constantFrom(...meaningful)).map(([at, hex]) => (bytes: Buffer) => {
    const index = Math.floor(at * (bytes.length + 1));
    return Buffer.concat([bytes.subarray(0, index), Buffer.from(hex, 'hex'), bytes.subarray(index)]);
  }),
  fc.constant((bytes: Buffer) => Buffer.concat([bytes, bytes])),
);
/** Fields of a heartbeat in any order, some repeated, with the right length in front. */
const shuffled: Arbitrary<Buffer> = fc
  .tuple(
    fc.array(heartbeat, { minLength: 1, maxLength: 4 }),
    fc.array(fc.constantFrom(...meaningful), { maxLength: 3 }),
  )
  .map(([parts, more]) => {
    const content = Buffer.concat([
      ...parts.map((part) => Buffer.from(HeartbeatRequest.encode(part).finish())),
      ...more.map((hex) => Buffer.from(hex, 'hex')),
    ]);
    return withLength(content);
  });
/** The alterations in the content of the heartbeat, whose length stays right. */
const altered: Arbitrary<Buffer> = fc
  .tuple(heartbeat, fc.array(alteration, { minLength: 1, maxLength: 3 }))
  .map(([value, alterations]) =>
    withLength(alteredBy(alterations, Buffer.from(HeartbeatRequest.encode(value).finish()))),
  );

function alteredBy(alterations: readonly Alteration[], bytes: Buffer): Buffer {
  let result = bytes;
  for (const alter of alterations) result = alter(result);
  return result;
}

function withLength(content: Buffer): Buffer {
  const length = [];
  for (let rest = content.length; ; rest >>>= 7) {
    length.push(rest < 128 ? rest : (rest & 127) | 128);
    if (rest < 128) return Buffer.concat([Buffer.of((2 << 3) | 2, ...length), content]);
  }
}

describe('a heartbeat whose tables are not decoded', () => {
  test.each([
    ['an ordinary one', heartbeat.map(encoded)],
    ['one in another order of fields, or with repeated ones', shuffled],
    ['an altered one', altered],
    [
      'an altered payload',
      fc
        .tuple(heartbeat.map(encoded), fc.array(alteration, { minLength: 1, maxLength: 3 }))
        .map(([bytes, alterations]) => alteredBy(alterations, bytes)),
    ],
  ])('is taken, refused, charged and shown as if they were: %s', (_name, payload) => {
    fc.assert(
      fc.property(payload, (bytes) => {
        // A cut payload would be completed by the field behind it; both ways refuse it before they part.
        fc.pre(isWellFormed(bytes, 0, bytes.length));
        expect(outcome(bytes)).toEqual(outcome(Buffer.concat([bytes, laterField])));
      }),
      { numRuns: 1_000 },
    );
  });

  test('is taken, refused, charged and shown in the same way after another one of its session, whose tables it may repeat', () => {
    const tables = fc.record({
      linkMetrics: fc.array(link, { maxLength: 2 }),
      runtimeListeners: fc.array(listener, { maxLength: 2 }),
    });
    const some = fc.tuple(tables, tables).chain((pool) =>
      fc.array(
        fc
          .tuple(heartbeat, fc.constantFrom(...pool), fc.constantFrom(...pool))
          .map(([value, { linkMetrics }, { runtimeListeners }]) =>
            encoded({ ...value, linkMetrics, runtimeListeners }),
          ),
        { minLength: 2, maxLength: 5 },
      ),
    );
    fc.assert(
      fc.property(some, (heartbeats) => {
        let known: ValidTables | undefined;
        for (const bytes of heartbeats) {
          expect(outcome(bytes, known)).toEqual(outcome(bytes));
          const read = readAgentPayload(bytes, 'node-1', known);
          if (read.kind === 'message') known = read.tables;
        }
      }),
      { numRuns: 300 },
    );
  });

  const full = (listeners: number) =>
    HeartbeatRequest.fromPartial({
      nodeId: 'node-1',
      sequence: 7n,
      cpuUsage: 0.5,
      uptimeSeconds: 9n,
      linkMetrics: [{ resourceType: 'l4_chain' }],
      runtimeListeners: Array.from({ length: listeners }, (_, index) =>
        RuntimeListener.fromPartial({ listenPort: index, routes: [{ service: 'a' }], bytesIn: 5n }),
      ),
    });

  test('keeps its tables as they came, in the memory of the payload', () => {
    const bytes = encoded(full(20));
    const read = readPlainHeartbeat(bytes);
    expect(read).toMatchObject({ nodeId: 'node-1', sequence: 7n, cpuUsage: 0.5, uptimeSeconds: 9n });
    expect(read?.runtimeListeners.bytes.buffer).toBe(bytes.buffer);
    const { runtimeListeners } = full(20);
    expect(HeartbeatRequest.decode(read!.runtimeListeners.bytes)).toEqual(
      HeartbeatRequest.fromPartial({ runtimeListeners }),
    );
  });

  test('keeps no payload in memory of which its tables are a small part', () => {
    const unknown = Buffer.concat([Buffer.of((9 << 3) | 2, 0x80, 0x08), Buffer.alloc(1_024)]);
    const bytes = withLength(Buffer.concat([Buffer.from(HeartbeatRequest.encode(full(3)).finish()), unknown]));
    const read = readAgentPayload(bytes, 'node-1');
    expect(read).toMatchObject({ kind: 'message', entries: 7 });
    if (read.kind !== 'message' || read.message.$case !== 'heartbeat') throw new Error('not a heartbeat');
    expect(read.message.value.runtimeListeners.bytes.buffer).not.toBe(bytes.buffer);
    expect(listenersIn(read.message.value.runtimeListeners.bytes)).toHaveLength(3);
  });
});
