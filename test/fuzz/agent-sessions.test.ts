/** What an agent with a good key sends: the OpenSession call, frames and payloads; valid ones altered, and bytes that never were one. */
import fc, { type Arbitrary } from 'fast-check';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SecureAgentServiceService } from '../../src/gen/svc/control/v1/secure_agent_service.js';
import { OpenSessionRequest, SecureFrame, SessionOffer } from '../../src/gen/svc/control/v1/session.js';
import { systemClock } from '../../src/kernel/clock.js';
import { controlPrologue, initiate } from '../../src/channel/noise/handshake.js';
import { agentKeysFrom } from '../../src/channel/noise/control-psk.js';
import { valueOf } from '../support/noise-parties.js';
import { createRawAgent, helloOf, isRefused, type RawAgent, type RawStream } from '../support/raw-agent.js';
import { alteration, anyPayload, validPayloads } from './payloads.js';
import { fuzzTimeoutMs, inputs, sendAll, startFuzzed, type Fuzzed } from './support.js';

/** A node may open ten sessions at once, and its sessions share what may be read of it. */
const sessionsPerNode = 4;
const sessions = 40;
/** Made up by the service for what it did not expect. */
const faultsOfTheService = [2, 13];

let fuzzed: Fuzzed;
beforeAll(async () => {
  // So that the failures of one address do not hide the rest.
  fuzzed = await startFuzzed({ SVC_ADMISSION_FAILURES_PER_ADDRESS: '100000/100000' });
});
afterAll(() => fuzzed.close());

interface Enrolled {
  readonly nodeId: string;
  readonly controlPsk: string;
}

const agentOf = ({ nodeId, controlPsk }: Enrolled): RawAgent =>
  createRawAgent({ ...fuzzed, clock: systemClock }, nodeId, controlPsk);

async function enrol(name: string): Promise<Enrolled> {
  const node = await fuzzed.admin.call<{ id: string; control_psk: string }>('POST', '/api/nodes', { name });
  return { nodeId: node.id, controlPsk: node.control_psk };
}

/** Holds one conversation in each of many sessions, and ends each with a half-close. */
async function converse<T>(
  name: string,
  conversations: readonly T[],
  speak: (stream: RawStream, conversation: T) => void,
): Promise<void> {
  const enrolled: Enrolled[] = [];
  for (let index = 0; index * sessionsPerNode < conversations.length; index += 1) {
    enrolled.push(await enrol(`${name}-${index}`));
  }
  let opened = 0;
  await sendAll(conversations, 8, async (conversation, index) => {
    // Each on its own connection: when one is ended, the library makes up INTERNAL for the other streams on it.
    const agent = agentOf(enrolled[Math.floor(index / sessionsPerNode)]!);
    try {
      const session = await agent.open();
      if (isRefused(session)) return;
      opened += 1;
      const stream = agent.attach(session);
      speak(stream, conversation);
      stream.halfClose();
      const { code, details } = await stream.status;
      expect(faultsOfTheService, details).not.toContain(code);
    } finally {
      agent.disconnect();
    }
  });
  // Sessions that are refused because the node had too many prove nothing.
  expect(opened).toBeGreaterThan(conversations.length * 0.9);
}

test(
  'no payload inside a session ends the service, holds its memory or disturbs a good agent',
  async () => {
    /** What one session says, and whether a good hello goes before it. */
    const conversation = fc.record({
      hello: fc.boolean(),
      payloads: fc.array(anyPayload, { minLength: 1, maxLength: 8 }),
    });
    await converse('payloads', inputs(conversation, sessions), (stream, { hello, payloads }) => {
      if (hello) stream.say(helloOf());
      for (const bytes of payloads) stream.sayBytes(bytes);
    });
    await fuzzed.unharmed();
  },
  fuzzTimeoutMs,
);

/** One frame: how it differs from the one that should come next. */
type Deed = (stream: RawStream) => void;
const small = fc.constantFrom(...validPayloads);
const fragmentBytes = fc.constantFrom(0, 1, 16_383, 16_384, 65_518);
const deed: Arbitrary<Deed> = fc.oneof(
  {
    weight: 3,
    arbitrary: small.map(
      (bytes): Deed =>
        (stream) =>
          stream.sayBytes(bytes),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.constantFrom(0, 1, 1, 2, 255), fragmentBytes).map(
      ([kind, length]): Deed =>
        (stream) =>
          stream.sayFragment(Buffer.concat([Buffer.of(kind), Buffer.alloc(length)])),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(small, alteration).map(([bytes, alter]): Deed => (stream) => {
      const frame = stream.seal(Buffer.concat([Buffer.of(0), bytes]));
      stream.sendBytes(alter(Buffer.from(SecureFrame.encode(frame).finish())));
    }),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom(0n, 1n, 2n, 2n ** 53n, 2n ** 64n - 1n), fc.uint8Array({ maxLength: 70_000, size: 'max' }))
      .map(
        ([sequence, bytes]): Deed =>
          (stream) =>
            stream.sendFrame({ sequence, ciphertext: Buffer.from(bytes) }),
      ),
  },
  {
    weight: 1,
    arbitrary: fc.uint8Array({ maxLength: 20 }).map(
      (id): Deed =>
        (stream) =>
          stream.sendFrame({ ...stream.seal(Buffer.of(0)), sessionId: Buffer.from(id) }),
    ),
  },
);

test(
  'no frame or fragment inside a session ends the service, holds its memory or disturbs a good agent',
  async () => {
    const conversation = fc.record({ hello: fc.boolean(), deeds: fc.array(deed, { minLength: 1, maxLength: 12 }) });
    await converse('frames', inputs(conversation, sessions), (stream, { hello, deeds }) => {
      if (hello) stream.say(helloOf());
      for (const act of deeds) act(stream);
    });
    await fuzzed.unharmed();
  },
  fuzzTimeoutMs,
);

test(
  'no OpenSession call ends the service, opens a session without its keys, or keeps one that is not attached',
  async () => {
    const enrolled = await enrol('handshakes');
    const stranger = await enrol('unknown');
    await fuzzed.admin.call('DELETE', `/api/nodes/${stranger.nodeId}`);
    const requestOf = ({ nodeId, controlPsk }: Enrolled, how: (typeof ways)[number]['of'], alter: Alter): Buffer => {
      const keys = valueOf(agentKeysFrom(controlPsk));
      const offer = SessionOffer.encode({
        timestampMs: BigInt(Date.now()),
        nonce: randomBytes(16),
        agentVersion: 'fuzz/1',
      }).finish();
      const party = {
        prologue: controlPrologue(nodeId),
        psk: keys.psk,
        localStatic: keys.nodeStatic,
        remoteStatic: keys.servicePublic,
      };
      const { message } = valueOf(
        initiate(party, how === 'offer' ? alter(Buffer.from(offer)).subarray(0, 900) : offer),
      );
      const handshake = how === 'message' ? alter(Buffer.from(message)) : Buffer.from(message);
      const request = Buffer.from(OpenSessionRequest.encode({ nodeId, protocolVersion: 1, handshake }).finish());
      return how === 'request' ? alter(request) : request;
    };
    const agent = agentOf(enrolled);
    const codes = new Map<number, number>();
    const calls = inputs(fc.record({ way: fc.constantFrom(...ways), alter: alteration }), 100);
    try {
      await sendAll(calls, 8, async ({ way, alter }) => {
        const bytes = requestOf(way.known ? enrolled : stranger, way.of, alter);
        const answer = await agent.unary(SecureAgentServiceService.openSession.path, bytes);
        const code = isRefused(answer) ? answer.code : 0;
        codes.set(code, (codes.get(code) ?? 0) + 1);
        expect(faultsOfTheService).not.toContain(code);
        // Whatever was done to it, the keys of a node that is gone open nothing.
        if (!way.known) expect(code).not.toBe(0);
      });
    } finally {
      agent.disconnect();
    }
    // INVALID_ARGUMENT, UNAUTHENTICATED: the calls reach past the first check.
    for (const code of [3, 16]) expect([...codes.keys()]).toContain(code);
    await fuzzed.unharmed();
  },
  fuzzTimeoutMs,
);

type Alter = (bytes: Buffer) => Buffer;
/** What of the call is altered, and whether its keys are those of a node. */
const ways = [
  { of: 'request', known: true },
  { of: 'message', known: true },
  { of: 'offer', known: true },
  { of: 'request', known: false },
  { of: 'offer', known: false },
] as const;
