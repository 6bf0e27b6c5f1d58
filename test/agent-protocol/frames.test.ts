/** The strict reading of frames and payloads. */
import fc from 'fast-check';
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { AgentPayload, SecureFrame } from '../../src/gen/svc/control/v1/session.js';
import { CipherState } from '../../src/channel/noise/cipher-state.js';
import { InboundFrames, decodeFrame, encodeFrame } from '../../src/transport/agent/frames.js';
import { readAgentPayload } from '../../src/transport/agent/agent-payload.js';
import { walkMessage } from '../../src/transport/agent/wire-scan.js';
import { valueOf } from '../support/noise-parties.js';

describe('the frame codec', () => {
  test('passes over unknown fields, and over known ones of another wire type', () => {
    const bytes = Buffer.from([0x08, 1, 0x12, 2, 7, 7, 0x18, 1, 0x22, 1, 9, 0x20, 5, 0x10, 3]);
    expect(decodeFrame(bytes)).toEqual({ sessionId: Buffer.alloc(0), sequence: 3, ciphertext: Buffer.alloc(0) });
  });
  test('reads what the generated code writes', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 20 }),
        fc.maxSafeNat(),
        fc.uint8Array({ maxLength: 300 }),
        (sessionId, sequence, ciphertext) => {
          const bytes = SecureFrame.encode({
            sessionId: Buffer.from(sessionId),
            sequence: BigInt(sequence),
            ciphertext: Buffer.from(ciphertext),
          }).finish();
          const read = decodeFrame(bytes);
          expect(read?.sequence).toBe(sequence);
          expect(Buffer.from(read!.sessionId)).toEqual(Buffer.from(sessionId));
          expect(Buffer.from(read!.ciphertext)).toEqual(Buffer.from(ciphertext));
        },
      ),
    );
  });
  test('refuses a truncated frame unless the cut falls between fields', () => {
    const bytes = SecureFrame.encode({
      sessionId: Buffer.alloc(16, 1),
      sequence: 300n,
      ciphertext: Buffer.alloc(40, 2),
    }).finish();
    const read = Array.from(
      { length: bytes.length },
      (_, length) => decodeFrame(bytes.subarray(0, length)) !== undefined,
    );
    expect(read.flatMap((whole, length) => (whole ? [length] : []))).toEqual([0, 18, 21]);
  });
});

describe('the frames of a session', () => {
  const id = Buffer.alloc(16, 7);
  function frames() {
    const key = randomBytes(32);
    const sender = new CipherState(Uint8Array.from(key));
    const inbound = new InboundFrames(new CipherState(Uint8Array.from(key)), id);
    const frame = (plaintext: Uint8Array, sessionId: Uint8Array = new Uint8Array(0)) => {
      const sequence = sender.nextSequence;
      return { sessionId, sequence, ciphertext: valueOf(sender.encrypt(sequence, plaintext)) };
    };
    return { inbound, frame };
  }
  const last = (...bytes: number[]): Uint8Array => Uint8Array.of(0, ...bytes);
  const more = (length: number): Uint8Array => Buffer.concat([Buffer.of(1), Buffer.alloc(length, 5)]);
  const refused = (failure: string) => ({ kind: 'refused_frame', failure });

  test('are joined to payloads, and the first that opens proves the agent', () => {
    const { inbound, frame } = frames();
    expect(inbound.proven).toBe(false);
    expect(inbound.takeFrame(frame(last(1, 2)))).toEqual({ kind: 'payload', bytes: Buffer.of(1, 2) });
    expect(inbound.proven).toBe(true);
    expect(inbound.takeFrame(frame(more(20_000)))).toEqual({ kind: 'fragment' });
    expect(inbound.heldBytes).toBe(20_000);
    const joined = inbound.takeFrame(frame(last(9)));
    expect([joined.kind === 'payload' && joined.bytes.length, inbound.heldBytes]).toEqual([20_001, 0]);
    const { sequence, ciphertext } = frame(last(3));
    expect(inbound.take(encodeFrame(sequence, ciphertext))).toEqual({ kind: 'payload', bytes: Buffer.of(3) });
  });
  test('may name their session, and no other', () => {
    const { inbound, frame } = frames();
    expect(inbound.takeFrame(frame(last(1), id)).kind).toBe('payload');
    const foreign = frame(last(1), Buffer.alloc(16, 8));
    expect(inbound.takeFrame(foreign)).toEqual(refused('foreign_session'));
    expect(inbound.takeFrame({ ...foreign, sessionId: id.subarray(1) })).toEqual(refused('foreign_session'));
    // A refused frame is not opened: the next one is still the second.
    expect(inbound.takeFrame({ ...foreign, sessionId: id }).kind).toBe('payload');
  });
  test('have ciphertexts of 65,535 bytes at most', () => {
    const { inbound, frame } = frames();
    expect(inbound.takeFrame(frame(Buffer.alloc(65_519))).kind).toBe('payload');
    const tooLarge = { sessionId: id, sequence: 1, ciphertext: new Uint8Array(65_536) };
    expect(inbound.takeFrame(tooLarge)).toEqual(refused('ciphertext_too_large'));
    expect(inbound.takeFrame({ ...tooLarge, ciphertext: new Uint8Array(65_535) })).toEqual(refused('not_authentic'));
  });
  test('are refused when they are not authentic, out of order, badly cut or too much together', () => {
    const { inbound, frame } = frames();
    const one = frame(last(1));
    expect(inbound.takeFrame({ ...one, sequence: 1 })).toEqual(refused('not_authentic'));
    expect(inbound.takeFrame({ ...one, ciphertext: new Uint8Array(40) })).toEqual(refused('not_authentic'));
    expect([inbound.proven, inbound.takeFrame(one).kind]).toEqual([false, 'payload']);
    expect(inbound.takeFrame(frame(more(16)))).toEqual(refused('bad_fragment'));
    const large = frames();
    for (let parts = 0; parts < 64; parts += 1) large.inbound.takeFrame(large.frame(more(65_518)));
    expect(large.inbound.takeFrame(large.frame(more(65_518)))).toEqual(refused('payload_too_large'));
    expect(large.inbound.heldBytes).toBe(0);
  });
  test('are no longer taken once the session is over, and nothing is held', () => {
    const { inbound, frame } = frames();
    inbound.takeFrame(frame(more(20_000)));
    inbound.discard();
    expect([inbound.heldBytes, inbound.takeFrame(frame(last(1)))]).toEqual([0, refused('not_authentic')]);
  });
});

describe('reading a payload', () => {
  test('refuses a heartbeat of two million empty listeners by its count, before decoding it', () => {
    const listeners = Buffer.alloc(4 * 1024 * 1024 - 10);
    for (let index = 0; index + 1 < listeners.length; index += 2) listeners[index] = (8 << 3) | 2;
    const header = Buffer.from([(2 << 3) | 2, 0, 0, 0, 0]);
    let length = listeners.length;
    for (let index = 1; index < 5; index += 1) {
      header[index] = (length & 0x7f) | (index < 4 ? 0x80 : 0);
      length >>= 7;
    }
    const read = readAgentPayload(Buffer.concat([header, listeners]), 'node-1');
    expect(read).toEqual({ kind: 'refused', why: 'runtime_listeners: too many entries' });
  });
  test('counts nested entries over the whole message', () => {
    const shape = { 1: { nested: { 2: { counted: { name: 'inner', max: 3 } } } } };
    const inner = [(2 << 3) | 2, 0];
    const outer = (count: number): number[] => [
      (1 << 3) | 2,
      2 * count,
      ...Array.from({ length: count }, () => inner).flat(),
    ];
    const countIn = (...bytes: number[]) => walkMessage(Buffer.from(bytes), shape);
    expect(countIn(...outer(2), ...outer(1))).toEqual({ ok: true, value: 3 });
    expect(countIn(...outer(2), ...outer(2))).toEqual({ ok: false, error: { tooMany: 'inner' } });
  });
  test('accepts unknown fields of a later release', () => {
    const payload = AgentPayload.encode({
      payload: { $case: 'close', value: { reason: 1, message: '', retryAfterMs: 0 } },
    }).finish();
    const unknownField = Buffer.from([((99 << 3) & 0x7f) | 0x80, 99 >> 4, 1]);
    expect(readAgentPayload(Buffer.concat([payload, unknownField]), 'node-1')).toMatchObject({ kind: 'message' });
  });
});
