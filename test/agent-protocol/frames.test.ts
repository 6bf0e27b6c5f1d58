/** The hand-written `SecureFrame` codec against the generated code, and the strict reading of payloads. */
import fc from 'fast-check';
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { MetricsReport } from '../../src/gen/svc/control/v1/metrics.js';
import { AgentPayload, SecureFrame } from '../../src/gen/svc/control/v1/session.js';
import { createCipherState } from '../../src/noise/cipher-state.js';
import { decodeFrame, encodeFrame } from '../../src/transport/agent/frame.js';
import { createInbound } from '../../src/transport/agent/inbound.js';
import { readAgentPayload } from '../../src/transport/agent/agent-payload.js';
import { countFields } from '../../src/transport/agent/wire-scan.js';

describe('the frame codec', () => {
  test('writes the same bytes as the generated code', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.uint8Array({ maxLength: 70_000 }), (sequence, ciphertext) => {
        const frame = { sessionId: Buffer.alloc(0), sequence: BigInt(sequence), ciphertext: Buffer.from(ciphertext) };
        expect(encodeFrame(sequence, ciphertext)).toEqual(Buffer.from(SecureFrame.encode(frame).finish()));
      }),
      { numRuns: 50 },
    );
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
  test('never throws on random bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        decodeFrame(bytes);
        readAgentPayload(bytes, 'node-1');
        const inbound = createInbound(createCipherState(randomBytes(32)), Buffer.alloc(16));
        expect(inbound.take(bytes).kind).toBe('refused_frame');
        expect(inbound.proven).toBe(false);
      }),
      { numRuns: 500 },
    );
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
  test.each([
    ['listeners', 4_096, { bandwidth: (count: number) => ({ listeners: Array.from({ length: count }, () => ({})) }) }],
    ['upstreams', 16_384, { gateway: (count: number) => ({ upstreams: Array.from({ length: count }, () => ({})) }) }],
  ])('refuses a metrics report with more %s than %i', (name, most, parts) => {
    const read = (count: number) => {
      const report = Object.fromEntries(Object.entries(parts).map(([part, of]) => [part, of(count)]));
      const value = MetricsReport.fromPartial(report);
      return readAgentPayload(AgentPayload.encode({ payload: { $case: 'metrics', value } }).finish(), 'node-1');
    };
    expect(read(most)).toMatchObject({ kind: 'message', entries: most });
    expect(read(most + 1)).toEqual({ kind: 'refused', why: `${name}: too many entries` });
  });
  test('counts nested entries over the whole message', () => {
    const shape = { nested: { 1: { counted: { 2: { name: 'inner', max: 3 } } } } };
    const inner = [(2 << 3) | 2, 0];
    const outer = (count: number): number[] => [
      (1 << 3) | 2,
      2 * count,
      ...Array.from({ length: count }, () => inner).flat(),
    ];
    const countIn = (...bytes: number[]) => countFields(Buffer.from(bytes), shape);
    expect(countIn(...outer(2), ...outer(1))).toEqual({ ok: true, value: new Map([['inner', 3]]) });
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
