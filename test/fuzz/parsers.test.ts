/**
 * What reads bytes of strangers and agents, called directly with far more inputs than a service can be sent: the first bytes
 * of a connection, PROXY headers, frames, fragments, the handshake, payloads. None throws, and none says something else of
 * more bytes than of the beginning.
 */
import { randomBytes } from 'node:crypto';
import fc, { type Arbitrary } from 'fast-check';
import { expect, test, vi } from 'vitest';
import { initiate, respond } from '../../src/channel/noise/handshake.js';
import { Joiner } from '../../src/channel/noise/fragmenter.js';
import { limits } from '../../src/kernel/limits.js';
import { readAgentPayload } from '../../src/transport/agent/agent-payload.js';
import { decodeFrame } from '../../src/transport/agent/frames.js';
import { h2cPreface, judgeFirstBytes, readProxyHeader } from '../../src/transport/listener/sniff.js';
import { handshakeParties, valueOf } from '../support/noise-parties.js';
import { altered, validPayloads } from './payloads.js';
import { fuzzTimeoutMs, inputs } from './support.js';

vi.setConfig({ testTimeout: fuzzTimeoutMs });

const bytes = (maxLength: number): Arbitrary<Buffer> =>
  fc.uint8Array({ maxLength, size: 'max' }).map((array) => Buffer.from(array));
/** Short, for many. */
const changed = (original: Arbitrary<Buffer>): Arbitrary<Buffer> => altered(original, 4_096);
const proxyStart = Buffer.from('0d0a0d0a000d0a515549540a21110010c0000201c6336401d43101bb00000000', 'hex');

test('the first bytes of a connection are judged the same, however many more follow', () => {
  const start = fc.oneof(
    bytes(40),
    changed(fc.constant(Buffer.from(h2cPreface))),
    fc.constant(Buffer.from(h2cPreface)),
  );
  const verdicts = new Set<string>();
  for (const [first, more] of inputs(fc.tuple(start, bytes(40)), 1_000)) {
    const verdict = judgeFirstBytes(first);
    verdicts.add(verdict);
    if (verdict !== 'undecided') expect(judgeFirstBytes(Buffer.concat([first, more]))).toBe(verdict);
  }
  expect([...verdicts].toSorted()).toEqual(['foreign', 'h2c', 'undecided']);
});

test('a PROXY header is read, awaited or refused, and no longer than what it says', () => {
  for (const [first, more] of inputs(fc.tuple(changed(fc.constant(proxyStart)), bytes(60)), 1_000)) {
    const header = readProxyHeader(first);
    if (header.kind === 'incomplete') continue;
    expect(readProxyHeader(Buffer.concat([first, more]))).toEqual(header);
    if (header.kind === 'complete') expect(header.length).toBeLessThanOrEqual(first.length);
  }
});

test('frames and fragments are refused or taken, and no more is held than a message may have', () => {
  const frame = Buffer.concat([Buffer.from('0a10', 'hex'), Buffer.alloc(16, 7), Buffer.from('10011a03aabbcc', 'hex')]);
  for (const input of inputs(fc.oneof(changed(fc.constant(frame)), bytes(80)), 1_500)) {
    const decoded = decodeFrame(input);
    if (decoded !== undefined) expect(decoded.ciphertext.length).toBeLessThanOrEqual(input.length);
  }
  const fragment = fc
    .tuple(fc.constantFrom(0, 1, 1, 2, 255), fc.constantFrom(0, 1, 16_383, 16_384, 65_518))
    .map(([kind, length]) => Buffer.concat([Buffer.of(kind), Buffer.alloc(length)]));
  for (const fragments of inputs(fc.array(fragment, { maxLength: 90 }), 50)) {
    const joiner = new Joiner(limits.agent.joinedInBytes);
    for (const each of fragments) {
      if (joiner.push(each).kind === 'refused') break;
      expect(joiner.heldBytes).toBeLessThanOrEqual(limits.agent.joinedInBytes);
    }
    joiner.discard();
    expect(joiner.heldBytes).toBe(0);
  }
});

test('no message 1 but the genuine one is answered', () => {
  const { agent, service } = handshakeParties();
  const genuine = Buffer.from(valueOf(initiate(agent, randomBytes(40))).message);
  let same = 0;
  for (const message of inputs(fc.oneof(changed(fc.constant(genuine)), bytes(1_100)), 200)) {
    const answer = respond(service, message);
    if (message.equals(genuine)) same += 1;
    expect(answer.ok).toBe(message.equals(genuine));
    if (answer.ok) answer.value.discard();
  }
  expect(same).toBeGreaterThan(0);
});

test('every payload is read or refused, whatever was done to its bytes', () => {
  const kinds = new Map<string, number>();
  for (const input of inputs(fc.oneof(changed(fc.constantFrom(...validPayloads)), bytes(300)), 1_500)) {
    const { kind } = readAgentPayload(input, 'node');
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  for (const kind of ['message', 'empty', 'refused']) expect(kinds.get(kind)).toBeGreaterThan(10);
});
