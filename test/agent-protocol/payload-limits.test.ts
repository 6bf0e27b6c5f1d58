/** Every limit on what an agent may say (`docs/contract/agent-protocol.md#control`, `docs/contract/configuration.md`). */
import { describe, expect, test } from 'vitest';
import { DiagnosticsReport } from '../../src/gen/svc/control/v1/diagnostics.js';
import { HeartbeatRequest } from '../../src/gen/svc/control/v1/heartbeat.js';
import { MetricsReport } from '../../src/gen/svc/control/v1/metrics.js';
import { ConfigApplyReport, ConfigRequest } from '../../src/gen/svc/control/v1/config.js';
import { AgentHello, AgentPayload, SessionClose } from '../../src/gen/svc/control/v1/session.js';
import { readAgentPayload } from '../../src/transport/agent/agent-payload.js';
import { walkMessage } from '../../src/transport/agent/wire-scan.js';

type AgentMessage = NonNullable<AgentPayload['payload']>;

const read = (payload: AgentMessage) => readAgentPayload(AgentPayload.encode({ payload }).finish(), 'node-1');
const why = (payload: AgentMessage): string | undefined => {
  const result = read(payload);
  return result.kind === 'refused' ? result.why : undefined;
};
const hello = (fields: Parameters<typeof AgentHello.fromPartial>[0]): AgentMessage => ({
  $case: 'hello',
  value: AgentHello.fromPartial(fields),
});
const heartbeat = (fields: Parameters<typeof HeartbeatRequest.fromPartial>[0]): AgentMessage => ({
  $case: 'heartbeat',
  value: HeartbeatRequest.fromPartial(fields),
});
const request = (fields: Parameters<typeof ConfigRequest.fromPartial>[0]): AgentMessage => ({
  $case: 'configRequest',
  value: ConfigRequest.fromPartial(fields),
});
const report = (fields: Parameters<typeof ConfigApplyReport.fromPartial>[0]): AgentMessage => ({
  $case: 'applyReport',
  value: ConfigApplyReport.fromPartial(fields),
});
const metrics = (fields: Parameters<typeof MetricsReport.fromPartial>[0]): AgentMessage => ({
  $case: 'metrics',
  value: MetricsReport.fromPartial(fields),
});
const diagnostics = (fields: Parameters<typeof DiagnosticsReport.fromPartial>[0]): AgentMessage => ({
  $case: 'diagnostics',
  value: DiagnosticsReport.fromPartial(fields),
});
const close = (message: string): AgentMessage => ({ $case: 'close', value: SessionClose.fromPartial({ message }) });

/** Messages with a text at each place that has one. */
const texts: readonly [field: string, place: string, withText: (text: string) => AgentMessage][] = [
  ['hello', 'publicIpv4', (text) => hello({ publicIpv4: text })],
  ['hello', 'publicIpv6', (text) => hello({ publicIpv6: text })],
  ['hello', 'agentVersion', (text) => hello({ agentVersion: text })],
  ['hello', 'detectedAddresses', (text) => hello({ detectedAddresses: ['x', text] })],
  ...(['transport', 'listenAddr', 'state'] as const).map((place): [string, string, (text: string) => AgentMessage] => [
    'runtime_listeners',
    place,
    (text) => heartbeat({ runtimeListeners: [{}, { [place]: text }] }),
  ]),
  ...(['service', 'payload', 'outer', 'security', 'matchKind', 'matchValue', 'nextHop', 'state'] as const).map(
    (place): [string, string, (text: string) => AgentMessage] => [
      'runtime_listeners.routes',
      place,
      (text) => heartbeat({ runtimeListeners: [{ routes: [{}, { [place]: text }] }] }),
    ],
  ),
  ...(['resourceType', 'resourceId', 'peerNodeId', 'peerEndpoint'] as const).map(
    (place): [string, string, (text: string) => AgentMessage] => [
      'link_metrics',
      place,
      (text) => heartbeat({ linkMetrics: [{}, { [place]: text }] }),
    ],
  ),
  ...(['resourceType', 'resourceId', 'path', 'message'] as const).map(
    (place): [string, string, (text: string) => AgentMessage] => [
      'errors',
      place,
      (text) => report({ errors: [{}, { [place]: text }] }),
    ],
  ),
  ['metrics', 'bandwidth.listeners.transport', (text) => metrics({ bandwidth: { listeners: [{ transport: text }] } })],
  [
    'metrics',
    'bandwidth.listeners.listenAddr',
    (text) => metrics({ bandwidth: { listeners: [{ listenAddr: text }] } }),
  ],
  ['metrics', 'gateway.upstreams.cluster', (text) => metrics({ gateway: { upstreams: [{ cluster: text }] } })],
  ['diagnostics', 'items.name', (text) => diagnostics({ items: [{}, { name: text }] })],
  ['diagnostics', 'items.value', (text) => diagnostics({ items: [{ value: text }] })],
  ['diagnostics', 'log', (text) => diagnostics({ log: ['x', text] })],
  ['close.message', 'message', (text) => close(text)],
];

describe('a text', () => {
  test.each(texts)('of %s (%s) has 1,024 bytes at most, not characters', (field, _place, withText) => {
    const tooLong = `${field}: a text is longer than 1024 bytes`;
    expect(why(withText('x'.repeat(1024)))).toBeUndefined();
    expect(why(withText('x'.repeat(1025)))).toBe(tooLong);
    expect(why(withText('\u20ac'.repeat(341)))).toBeUndefined();
    expect(why(withText('\u20ac'.repeat(342)))).toBe(tooLong);
  });
});

describe('a port', () => {
  test.each([
    ['hello.multiplex_port', (port: number) => hello({ multiplexPort: port })],
    ['runtime_listeners.listen_port', (port: number) => heartbeat({ runtimeListeners: [{ listenPort: port }] })],
  ])('as %s is from 0 to 65535', (field, withPort) => {
    for (const port of [0, 1, 65_535]) expect(why(withPort(port))).toBeUndefined();
    for (const port of [-1, 65_536]) expect(why(withPort(port))).toBe(`${field}: expected 0 to 65535`);
  });
});

describe('a checksum', () => {
  test.each([
    ['a request', (checksum: Buffer) => request({ checksum })],
    ['a report', (checksum: Buffer) => report({ checksum })],
  ])('in %s has 32 bytes or none', (_name, withChecksum) => {
    for (const length of [0, 32]) expect(why(withChecksum(Buffer.alloc(length)))).toBeUndefined();
    for (const length of [1, 31, 33])
      expect(why(withChecksum(Buffer.alloc(length)))).toBe(`checksum: expected 32 bytes, got ${length}`);
  });
});

describe('a node id', () => {
  test.each([
    ['a hello', (nodeId: string) => hello({ nodeId })],
    ['a heartbeat', (nodeId: string) => heartbeat({ nodeId })],
    ['a request', (nodeId: string) => request({ nodeId })],
  ])('in %s is that of the session, or empty', (_name, withNode) => {
    for (const nodeId of ['', 'node-1']) expect(why(withNode(nodeId))).toBeUndefined();
    expect(why(withNode('node-2'))).toBe('node_id: not the node of this session');
  });
});

describe('a list', () => {
  const many = (count: number): readonly object[] => Array.from({ length: count }, () => ({}));
  test.each<[string, number, (count: number) => AgentMessage]>([
    ['features', 32, (count) => hello({ features: Array.from({ length: count }, () => 'f') })],
    ['detected_addresses', 64, (count) => hello({ detectedAddresses: Array.from({ length: count }, () => '::1') })],
    ['link_metrics', 16_384, (count) => heartbeat({ linkMetrics: many(count) })],
    ['runtime_listeners', 4_096, (count) => heartbeat({ runtimeListeners: many(count) })],
    ['listeners', 4_096, (count) => metrics({ bandwidth: { listeners: many(count) } })],
    ['upstreams', 16_384, (count) => metrics({ gateway: { upstreams: many(count) } })],
    ['routes', 16_384, (count) => heartbeat({ runtimeListeners: [{ routes: many(count) }] })],
    ['errors', 1_000, (count) => report({ errors: many(count) })],
    ['items', 1_000, (count) => diagnostics({ items: many(count) })],
    ['log', 100, (count) => diagnostics({ log: Array.from({ length: count }, () => '') })],
  ])('of %s has %i entries at most, each of which is charged', (name, most, of) => {
    const outer = name === 'routes' ? 1 : 0;
    expect(read(of(most))).toMatchObject({ kind: 'message', entries: most + outer });
    expect(why(of(most + 1))).toBe(`${name}: too many entries`);
  });
});

test('a diagnostics report has 64 KiB at most, and is not decoded beyond', () => {
  const sized = (bytes: number): AgentMessage => {
    const items = Array.from({ length: 81 }, () => ({ name: 'x'.repeat(800) }));
    const without = DiagnosticsReport.encode(DiagnosticsReport.fromPartial({ items, log: [''] })).finish().length;
    // A text of more than 127 bytes takes one byte more for its length.
    return diagnostics({ items, log: ['y'.repeat(bytes - without - 1)] });
  };
  expect(read(sized(65_536)).kind).toBe('message');
  expect(why(sized(65_537))).toBe('diagnostics: too many bytes');
});

test('a process id has 16 bytes, or none', () => {
  const named = (bytes: number) => hello({ processId: Buffer.alloc(bytes, 1) });
  for (const bytes of [0, 16]) expect(read(named(bytes)).kind).toBe('message');
  for (const bytes of [1, 15, 17, 1_024])
    expect(why(named(bytes))).toBe('hello.process_id: expected 16 bytes, or none');
});

describe('a payload', () => {
  test('that contains nothing this release knows is empty', () => {
    expect(readAgentPayload(new Uint8Array(0), 'node-1')).toEqual({ kind: 'empty' });
    expect(readAgentPayload(Uint8Array.of((15 << 3) | 0, 1), 'node-1')).toEqual({ kind: 'empty' });
  });
  test('that does not parse is refused, also deep inside', () => {
    const malformed = { kind: 'refused', why: 'payload does not parse' };
    // A heartbeat whose listener, or its route, promises more bytes than it has.
    expect(readAgentPayload(Uint8Array.of(0x12, 2, 0x42, 5), 'node-1')).toEqual(malformed);
    expect(readAgentPayload(Uint8Array.of(0x12, 4, 0x42, 2, 0x2a, 5), 'node-1')).toEqual(malformed);
    // A text that is not UTF-8 is for the decoder to judge; a wrong wire type of a known field is not malformed.
    expect(readAgentPayload(Uint8Array.of(0x0a, 0xff), 'node-1')).toEqual(malformed);
  });
});

describe('the walk over protobuf bytes', () => {
  const wellFormed = (...bytes: number[]): boolean => walkMessage(Uint8Array.from(bytes), {}).ok;

  test('passes over fields of each wire type', () => {
    expect(wellFormed()).toBe(true);
    expect(wellFormed(0x08, 0x96, 0x01)).toBe(true);
    expect(wellFormed(0x09, 1, 2, 3, 4, 5, 6, 7, 8, 0x10, 5)).toBe(true);
    expect(wellFormed(0x15, 1, 2, 3, 4)).toBe(true);
    expect(wellFormed(0x1a, 2, 7, 7, 0x20, 1)).toBe(true);
  });
  test.each([
    ['a varint that does not end', [0x08, 0x80]],
    ['a varint of eleven bytes', [0x08, ...Array<number>(10).fill(0x80), 0x01]],
    ['eight bytes that are seven', [0x09, 1, 2, 3, 4, 5, 6, 7]],
    ['four bytes that are three', [0x0d, 1, 2, 3]],
    ['a content that is too short', [0x0a, 3, 1, 2]],
    ['a length that does not end', [0x0a, 0x80]],
    ['a group', [0x0b]],
    ['the end of a group', [0x0c]],
    ['wire type 6', [0x0e, 1, 2, 3, 4]],
    ['wire type 7', [0x0f, 1, 2, 3, 4]],
    ['field number 0', [0x00, 1]],
    ['a field number of 30 bits', [0x80, 0x80, 0x80, 0x80, 0x10, 1]],
  ])('refuses %s', (_name, bytes) => {
    expect(wellFormed(...bytes)).toBe(false);
    // Also behind a field that is well-formed, and inside a message.
    expect(wellFormed(0x10, 1, ...bytes)).toBe(false);
    const inside = Uint8Array.of(0x0a, bytes.length, ...bytes);
    expect(walkMessage(inside, { 1: { nested: {} } })).toEqual({ ok: false, error: 'malformed' });
  });
  test('takes the largest field number and a varint of ten bytes', () => {
    expect(wellFormed(0xf8, 0xff, 0xff, 0xff, 0x0f, 1)).toBe(true);
    expect(wellFormed(0x08, ...Array<number>(9).fill(0xff), 0x01)).toBe(true);
  });
  test('refuses a message whose last field ends behind it', () => {
    // Inside the payload, but not inside the message that it belongs to.
    expect(walkMessage(Uint8Array.of(0x0a, 2, 0x15, 1, 2, 3, 4), { 1: { nested: {} } }).ok).toBe(false);
    expect(walkMessage(Uint8Array.of(0x0a, 2, 0x0a, 1, 7), { 1: { nested: {} } }).ok).toBe(false);
  });
  test('counts only length-delimited fields, and walks into those only', () => {
    const shape = { 1: { counted: { name: 'things', max: 1 }, nested: {} } };
    expect(walkMessage(Uint8Array.of(0x08, 1, 0x08, 1), shape)).toEqual({
      ok: true,
      value: 0,
    });
    expect(walkMessage(Uint8Array.of(0x0a, 0, 0x0a, 0), shape)).toEqual({ ok: false, error: { tooMany: 'things' } });
    // The inside of a field that is not a message is not read.
    expect(walkMessage(Uint8Array.of(0x12, 1, 0xff), shape)).toEqual({ ok: true, value: 0 });
  });
});
