/** Payloads of agents for fuzzing: one valid one of every kind, and what can be done to bytes. */
import fc, { type Arbitrary } from 'fast-check';
import { ConfigApplyReport } from '../../src/gen/svc/control/v1/config.js';
import { HeartbeatRequest } from '../../src/gen/svc/control/v1/heartbeat.js';
import { MetricsReport } from '../../src/gen/svc/control/v1/metrics.js';
import { AgentPayload } from '../../src/gen/svc/control/v1/session.js';
import { configRequestOf, heartbeatOf, helloOf, type Sayable } from '../support/raw-agent.js';

const listener = {
  listenAddr: '0.0.0.0',
  listenPort: 443,
  state: 'running',
  routes: [{ matchKind: 'sni', matchValue: 'a.example' }],
};
const link = { resourceType: 'l4_chain', resourceId: 'x', peerEndpoint: '192.0.2.1:443', rttMs: 1.5, lossRatio: 0.5 };
const encoded = (payload: Sayable): Buffer => Buffer.from(AgentPayload.encode({ payload }).finish());

export const validPayloads: readonly Buffer[] = [
  encoded(helloOf({ publicIpv4: '192.0.2.1', publicIpv6: '2001:db8::1', detectedAddresses: ['192.0.2.1', 'x'] })),
  encoded({
    $case: 'heartbeat',
    value: HeartbeatRequest.fromPartial({ sequence: 1n, runtimeListeners: [listener], linkMetrics: [link] } as object),
  }),
  encoded(heartbeatOf(2)),
  encoded(configRequestOf(0n)),
  encoded(configRequestOf(2n ** 53n, Buffer.alloc(32))),
  encoded({
    $case: 'applyReport',
    value: ConfigApplyReport.fromPartial({
      generation: 1n,
      status: 2,
      errors: [{ resourceType: 'l4_chain', resourceId: 'x', path: 'hops[0]', message: 'no' }],
      checksum: Buffer.alloc(32),
    }),
  }),
  encoded({
    $case: 'metrics',
    value: MetricsReport.fromPartial({
      sequence: 1n,
      connections: { active: 1n, accepted: 2n ** 63n },
      bandwidth: { bitsInPerSecond: 1.5, listeners: [{ transport: 'tcp', listenAddr: '0.0.0.0', listenPort: 443 }] },
      gateway: { latencyP99Ms: 2, upstreams: [{ cluster: 'web', healthy: true }] },
    }),
  }),
  encoded({ $case: 'close', value: { reason: 1, message: 'bye', retryAfterMs: 0 } }),
  Buffer.alloc(0),
];

/**
 * More than the 4 MiB that a message may have. A client that goes on writing when its stream was ended 2 s ago is cut off, and its library
 * then makes up the status INTERNAL: a payload must be written in less, also on a busy machine.
 */
const payloadBytesMax = 6 * 1024 * 1024;

type Alteration = (bytes: Buffer) => Buffer;
const place = fc.double({ min: 0, max: 0.999, noNaN: true });
/** @param maxBytes how long it may make them by repetition */
const alterations = (maxBytes: number): Arbitrary<Alteration> =>
  fc.oneof(
    fc.tuple(place, fc.integer({ min: 1, max: 255 })).map(([at, bits]) => (bytes: Buffer) => {
      const altered = Buffer.from(bytes);
      const index = Math.floor(at * altered.length);
      if (altered.length > 0) altered[index] = altered[index]! ^ bits;
      return altered;
    }),
    place.map((at) => (bytes: Buffer) => bytes.subarray(0, Math.floor(at * bytes.length))),
    fc
      .tuple(place, fc.constantFrom('ffffffffffffffffff01', 'ffffffff0f', '00', '0a00', '80808080808080808080'))
      .map(([at, hex]) => (bytes: Buffer) => {
        const index = Math.floor(at * (bytes.length + 1));
        return Buffer.concat([bytes.subarray(0, index), Buffer.from(hex, 'hex'), bytes.subarray(index)]);
      }),
    fc.constant((bytes: Buffer) => Buffer.concat([bytes, bytes])),
    fc.integer({ min: 2, max: 3_000 }).map((times) => (bytes: Buffer) => {
      const most = Math.max(1, Math.floor(maxBytes / Math.max(1, bytes.length)));
      return Buffer.concat(Array.from({ length: Math.min(times, most) }, () => bytes));
    }),
    // Deeply nested groups and messages.
    fc.integer({ min: 1, max: 5_000 }).map((depth) => () => Buffer.alloc(depth, 0x0b)),
  );

export const alteration = alterations(payloadBytesMax);

/** The bytes with up to three alterations; sometimes with none. */
export function altered(bytes: Arbitrary<Buffer>, maxBytes = payloadBytesMax): Arbitrary<Buffer> {
  return fc
    .tuple(bytes, fc.array(alterations(maxBytes), { maxLength: 3 }))
    .map(([original, chosen]) => chosen.reduce((changed, alter) => alter(changed), original));
}

export const anyPayload: Arbitrary<Buffer> = fc.oneof(
  { weight: 6, arbitrary: altered(fc.constantFrom(...validPayloads)) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)) },
);
