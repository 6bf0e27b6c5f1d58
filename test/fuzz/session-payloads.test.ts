/** Payloads that an agent with a good key sends inside its sessions: valid ones altered, and bytes that never were one. */
import fc from 'fast-check';
import type { Arbitrary } from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ConfigApplyReport } from '../../src/gen/svc/control/v1/config.js';
import { HeartbeatRequest } from '../../src/gen/svc/control/v1/heartbeat.js';
import { AgentPayload } from '../../src/gen/svc/control/v1/session.js';
import { systemClock } from '../../src/kernel/clock.js';
import { configRequestOf, createRawAgent, heartbeatOf, helloOf, isRefused } from '../support/raw-agent.js';
import type { RawAgent, Sayable } from '../support/raw-agent.js';
import type { Fuzzed } from './support.js';
import { fuzzTimeoutMs, inputs, sendAll, startFuzzed } from './support.js';

/** A node may open ten sessions at once. */
const sessionsPerNode = 8;
const sessions = 96;

let fuzzed: Fuzzed;
beforeAll(async () => {
  fuzzed = await startFuzzed();
}, 60_000);
afterAll(() => fuzzed.close());

const listener = {
  listenAddr: '0.0.0.0',
  listenPort: 443,
  state: 'running',
  routes: [{ matchKind: 'sni', matchValue: 'a.example' }],
};
const link = { resourceType: 'l4_chain', resourceId: 'x', peerEndpoint: '192.0.2.1:443', rttMs: 1.5, lossRatio: 0.5 };
const encoded = (payload: Sayable): Buffer => Buffer.from(AgentPayload.encode({ payload }).finish());

const valid: readonly Buffer[] = [
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
  encoded({ $case: 'close', value: { reason: 1, message: 'bye', retryAfterMs: 0 } }),
  Buffer.alloc(0),
];

/**
 * Twice the largest snapshot. A client that goes on writing when its stream was ended 2 s ago is cut off, and its library
 * then makes up the status INTERNAL: a payload must be written in less, also on a busy machine.
 */
const payloadBytesMax = 16 * 1024 * 1024;

type Alteration = (bytes: Buffer) => Buffer;
const place = fc.double({ min: 0, max: 0.999, noNaN: true });
const alteration: Arbitrary<Alteration> = fc.oneof(
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
    const most = Math.max(1, Math.floor(payloadBytesMax / Math.max(1, bytes.length)));
    return Buffer.concat(Array.from({ length: Math.min(times, most) }, () => bytes));
  }),
  // Deeply nested groups and messages.
  fc.integer({ min: 1, max: 5_000 }).map((depth) => () => Buffer.alloc(depth, 0x0b)),
);

const payload: Arbitrary<Buffer> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.constantFrom(...valid), fc.array(alteration, { maxLength: 3 }))
      .map(([bytes, alterations]) => alterations.reduce((altered, alter) => alter(altered), bytes)),
  },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)) },
);

/** What one session says, and whether a good hello goes before it. */
const conversation = fc.record({ hello: fc.boolean(), payloads: fc.array(payload, { minLength: 1, maxLength: 8 }) });

test(
  'no payload inside a session ends the service, holds its memory or disturbs a good agent',
  async () => {
    const conversations = inputs(conversation, sessions);
    const agents: RawAgent[] = [];
    for (let index = 0; index * sessionsPerNode < conversations.length; index += 1) {
      const node = await fuzzed.admin.call<{ id: string; control_psk: string }>('POST', '/api/nodes', {
        name: `fuzzed-${index}`,
      });
      agents.push(createRawAgent({ ...fuzzed, clock: systemClock }, node.id, node.control_psk));
    }
    let opened = 0;
    try {
      await sendAll(conversations, 8, async ({ hello, payloads }, index) => {
        const agent = agents[Math.floor(index / sessionsPerNode)]!;
        const session = await agent.open();
        if (isRefused(session)) return;
        opened += 1;
        const stream = agent.attach(session);
        if (hello) stream.say(helloOf());
        for (const bytes of payloads) stream.sayBytes(bytes);
        stream.halfClose();
        // INTERNAL would be a fault of the service.
        expect((await stream.status).code).not.toBe(13);
      });
    } finally {
      for (const agent of agents) agent.disconnect();
    }
    // Sessions that are refused because the node had too many prove nothing.
    expect(opened).toBeGreaterThan(conversations.length * 0.9);
    await fuzzed.unharmed();
  },
  fuzzTimeoutMs,
);
