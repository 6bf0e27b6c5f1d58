/** Tables that come as before are not read again, and that changes nothing of what a heartbeat means. */
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HeartbeatRequest, RuntimeListener, type LinkMetric } from '../../src/gen/svc/control/v1/heartbeat.js';
import { AgentPayload } from '../../src/gen/svc/control/v1/session.js';
import { listenersIn } from '../../src/reports/reported.js';
import { readAgentPayload } from '../../src/transport/agent/agent-payload.js';
import { noTables, type KnownTables } from '../../src/transport/agent/heartbeat-tables.js';
import { tablesOnWire } from '../support/reported-tables.js';

const payload = (value: HeartbeatRequest): Uint8Array =>
  AgentPayload.encode({ payload: { $case: 'heartbeat', value } }).finish();
const listener = (port: number, bytes: number): Partial<RuntimeListener> => ({
  transport: 'tcp',
  listenAddr: '0.0.0.0',
  listenPort: port,
  state: 'running',
  routes: [{ service: `${port}`, matchKind: 'sni', matchValue: 'a.example' } as never],
  bytesIn: BigInt(bytes),
});
const link = (id: string, rttMs: number): Partial<LinkMetric> => ({ resourceType: 'l4_chain', resourceId: id, rttMs });
const heartbeat = (runtimeListeners: object[], linkMetrics: object[], sequence = 1n): HeartbeatRequest =>
  HeartbeatRequest.fromPartial({ nodeId: 'n', sequence, cpuUsage: 0.5, runtimeListeners, linkMetrics } as never);

/** @throws if it is refused */
function read(bytes: Uint8Array, known: KnownTables | undefined) {
  const result = readAgentPayload(bytes, 'n', known);
  if (result.kind !== 'message' || result.message.$case !== 'heartbeat') throw new Error(result.kind);
  return { ...result, heartbeat: result.message.value };
}
const decoded = ({
  listeners,
  links,
}: Pick<KnownTables, 'listeners'> & { readonly links: Pick<KnownTables['links'], 'bytes'> }) => [
  listenersIn(listeners, new Map()),
  HeartbeatRequest.decode(links.bytes).linkMetrics,
];

const tables = fc.tuple(
  fc.array(fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 0, max: 2 })), { maxLength: 3 }),
  fc.array(fc.tuple(fc.constantFrom('a', 'b'), fc.integer({ min: 0, max: 2 })), { maxLength: 2 }),
);

describe('a heartbeat behind others of its session', () => {
  test('means what it means alone, whatever came before', () => {
    fc.assert(
      fc.property(fc.array(tables, { minLength: 1, maxLength: 8 }), (beats) => {
        let known = noTables;
        for (const [at, [listeners, links]] of beats.entries()) {
          const sent = heartbeat(
            listeners.map((one) => listener(...one)),
            links.map((one) => link(...one)),
            BigInt(at),
          );
          const [behind, alone] = [read(payload(sent), known), read(payload(sent), noTables)];
          expect(behind.entries).toBe(alone.entries);
          expect(behind.heartbeat).toMatchObject({ sequence: BigInt(at), cpuUsage: 0.5, nodeId: 'n' });
          expect(decoded(behind.tables)).toEqual(decoded(tablesOnWire(sent)));
          known = behind.tables;
        }
      }),
    );
  });

  test('keeps the tables that have not changed, and does not decode them', () => {
    const first = read(payload(heartbeat([listener(1, 1)], [link('a', 1)])), noTables);
    const second = read(payload(heartbeat([listener(1, 1)], [link('a', 2)], 2n)), first.tables);
    expect(second.tables.listeners).toBe(first.tables.listeners);
    expect(second.heartbeat.runtimeListeners).toEqual([]);
    expect(second.heartbeat.linkMetrics).toMatchObject([{ rttMs: 2 }]);
    const { links } = tablesOnWire(heartbeat([listener(1, 1)], [link('a', 2)]));
    expect(Buffer.from(second.tables.links.bytes)).toEqual(Buffer.from(links.bytes));
  });

  test('has the shape of a table once for all nodes, and decodes no listener for counters', () => {
    const first = read(payload(heartbeat([listener(7, 1)], [])), noTables);
    for (const known of [first.tables, noTables]) {
      const later = read(payload(heartbeat([listener(7, 2)], [])), known);
      expect(later.heartbeat.runtimeListeners).toEqual([]);
      expect(later.tables.listeners.shape).toBe(first.tables.listeners.shape);
      expect(listenersIn(later.tables.listeners, new Map())).toMatchObject([{ listen_port: 7, bytes_in: 2 }]);
    }
  });

  test('has its counters as the decoder reads them, whatever they are and wherever they stand', () => {
    const counter = fc.option(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), { nil: undefined });
    const names = ['bytesIn', 'bytesOut', 'activeSessions', 'totalSessions', 'errorSessions'] as const;
    const counters = fc.record(Object.fromEntries(names.map((name) => [name, counter])));
    const oneTag = (8 << 3) | 2;
    /** A field that this release does not know, or none. */
    const unknown = fc.constantFrom([], [11 << 3, 5], [(12 << 3) | 2, 1, 7], [0x80 | 0x08, 0x01, 5]);
    fc.assert(
      fc.property(fc.array(fc.tuple(counters, unknown, fc.boolean()), { maxLength: 4 }), (rows) => {
        const sent = rows.map(([values], at) => ({ ...listener(at % 3, 0), bytesIn: undefined, ...values }));
        const encoded = heartbeat(sent, []).runtimeListeners.map((one, at) => {
          const [, more, countersFirst] = rows[at]!;
          const noCounters = Object.fromEntries(names.map((name) => [name, undefined]));
          const bare = RuntimeListener.encode({ ...one, ...noCounters }).finish();
          const counted = RuntimeListener.encode(one).finish().subarray(bare.length);
          const parts = countersFirst ? [counted, bare] : [bare, counted];
          return Buffer.concat([...parts, Uint8Array.from(more)]);
        });
        const list = encoded.reduce((writer, one) => writer.uint32(oneTag).bytes(one), new BinaryWriter()).finish();
        const bytes = new BinaryWriter()
          .uint32((2 << 3) | 2)
          .bytes(list)
          .finish();
        const first = read(bytes, noTables);
        const again = read(bytes, first.tables);
        for (const { tables: found } of [first, again]) {
          expect(decoded(found)).toEqual(decoded(tablesOnWire(heartbeat(sent, []))));
        }
        expect(again.entries).toBe(first.entries);
      }),
    );
  });

  test('is refused for a table that is not valid, also when the table before was', () => {
    const { tables: known } = read(payload(heartbeat([listener(1, 1)], [])), noTables);
    const bad = heartbeat([{ ...listener(1, 1), listenPort: 70_000 }], []);
    expect(readAgentPayload(payload(bad), 'n', known)).toMatchObject({ kind: 'refused' });
    const foreign = { ...heartbeat([listener(1, 1)], []), nodeId: 'other' };
    expect(readAgentPayload(payload(foreign), 'n', known)).toMatchObject({ kind: 'refused' });
  });

  test('may have its lists in pieces, as no usual encoder writes them', () => {
    const pieces = [heartbeat([listener(1, 1)], []), heartbeat([], [link('a', 1)]), heartbeat([listener(2, 1)], [])];
    const content = Buffer.concat(pieces.map((piece) => HeartbeatRequest.encode(piece).finish()));
    const bytes = Buffer.concat([Buffer.from([0x12, (content.length & 127) | 128, content.length >> 7]), content]);
    let known = noTables;
    for (let round = 0; round < 2; round += 1) {
      const result = read(bytes, known);
      expect(result.entries).toBe(5);
      expect(decoded(result.tables).map((rows) => rows.length)).toEqual([2, 1]);
      known = result.tables;
    }
  });

  test('is whole for a reader that knows no tables, whoever has read one like it', () => {
    const bytes = payload(heartbeat([listener(1, 1), listener(2, 1)], [link('a', 1)]));
    const { tables: kept } = read(bytes, noTables);
    for (const { heartbeat } of [read(bytes, undefined), read(bytes, undefined)]) {
      expect([heartbeat.runtimeListeners.length, heartbeat.linkMetrics.length]).toEqual([2, 1]);
    }
    expect(kept.listeners.values.length).toBe(10);
  });

  test('is read like any other bytes when it is malformed', () => {
    const whole = payload(heartbeat([listener(1, 1), listener(2, 1)], [link('a', 1)]));
    const { tables: known } = read(whole, noTables);
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
        const bytes = Uint8Array.from(whole, (byte, index) => (index === at ? byte ^ change : byte));
        const [behind, alone] = [readAgentPayload(bytes, 'n', known), readAgentPayload(bytes, 'n')];
        expect(behind.kind).toBe(alone.kind);
        if (behind.kind === 'message' && alone.kind === 'message') expect(behind.entries).toBe(alone.entries);
      }),
      { numRuns: 2_000 },
    );
  });
});
