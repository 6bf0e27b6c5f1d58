/** The heads of HTTP/2 frames, however the bytes are cut (`docs/contract/agent-protocol.md#the-listener`). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { endHeaders, frame, FrameType, opening } from '../../scripts/stack/http2-frames.js';
import { FrameReader } from '../../src/transport/agent/frame-reader.js';

/** What a reader has counted of bytes that come in these pieces. */
function read(bytes: Buffer, cuts: readonly number[] = []) {
  const reader = new FrameReader();
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  let from = 0;
  for (const end of ends) {
    reader.read(bytes.subarray(from, end));
    from = end;
  }
  const { frames, headerBytes, largeBlock } = reader;
  return { frames, headerBytes, largeBlock };
}

const anyFrame = fc.record({
  type: fc.oneof(fc.constantFrom(...Object.values(FrameType)), fc.nat(255)),
  flags: fc.nat(255),
  stream: fc.nat(0x7fff_ffff),
  length: fc.oneof(fc.constant(0), fc.nat(40), fc.nat(9_000)),
});

test('every frame is counted, and the lengths of header blocks, wherever the bytes are cut', () => {
  fc.assert(
    fc.property(fc.array(anyFrame, { maxLength: 12 }), fc.array(fc.nat(), { maxLength: 30 }), (frames, cuts) => {
      // Payloads full of what could be taken for the head of another frame.
      const bytes = frames.map(({ type, flags, stream, length }) =>
        frame(type, flags, stream, Buffer.alloc(length, 1)),
      );
      let [block, largeBlock, headerBytes] = [0, false, 0];
      for (const { type, flags, length } of frames) {
        if (type !== FrameType.headers && type !== FrameType.continuation) continue;
        block = type === FrameType.headers ? length : block + length;
        headerBytes += length;
        largeBlock ||= block > 8_192;
        if ((flags & endHeaders) !== 0) block = 0;
      }
      const counted = { frames: frames.length + 1, headerBytes, largeBlock };
      expect(read(Buffer.concat([opening, ...bytes]), cuts)).toEqual(counted);
    }),
  );
});

test('one byte at a time counts as much as all at once', () => {
  const bytes = Buffer.concat([
    opening,
    frame(FrameType.headers, endHeaders, 1, Buffer.alloc(300)),
    opening.subarray(24),
  ]);
  expect(read(bytes, Array.from(bytes.keys()))).toEqual(read(bytes));
  expect(read(bytes)).toEqual({ frames: 3, headerBytes: 300, largeBlock: false });
});

describe('a header block over 8 KiB', () => {
  const headersOf = (length: number, flags = 0): Buffer => frame(FrameType.headers, flags, 1, Buffer.alloc(length));
  const more = (length: number, flags = 0): Buffer => frame(FrameType.continuation, flags, 1, Buffer.alloc(length));
  test.each<[string, Buffer, boolean]>([
    ['one frame of 8 KiB', headersOf(8_192, endHeaders), false],
    ['one frame of a byte more', headersOf(8_193, endHeaders), true],
    ['the head of such a frame alone', headersOf(8_193).subarray(0, 9), true],
    ['frames that add up to 8 KiB', Buffer.concat([headersOf(8_000), more(191), more(1, endHeaders)]), false],
    ['frames that add up to a byte more', Buffer.concat([headersOf(8_000), more(191), more(2, endHeaders)]), true],
    ['two blocks of 8 KiB', Buffer.concat([headersOf(8_192, endHeaders), headersOf(8_192, endHeaders)]), false],
    ['8 KiB of other frames', frame(FrameType.data, 0, 1, Buffer.alloc(9_000)), false],
  ])('%s', (_, bytes, large) => expect(read(Buffer.concat([opening, bytes])).largeBlock).toBe(large));
});

test('what was counted is forgotten, and a block that has begun is not', () => {
  const reader = new FrameReader();
  reader.read(Buffer.concat([opening, frame(FrameType.headers, 0, 1, Buffer.alloc(8_000))]));
  reader.forget();
  expect(reader).toMatchObject({ frames: 0, headerBytes: 0, largeBlock: false });
  reader.read(frame(FrameType.continuation, endHeaders, 1, Buffer.alloc(200)));
  expect(reader).toMatchObject({ frames: 1, headerBytes: 200, largeBlock: true });
});
