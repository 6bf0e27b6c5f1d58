/** Bytes of a call cut into gRPC messages, however they come. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { limits } from '../../src/kernel/limits.js';
import { MessageReader, framedMessage, messageHeadBytes } from '../../src/transport/agent/grpc-messages.js';

const messages = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 8 });
const cuts = fc.array(fc.nat(400), { maxLength: 12 });

/** The bytes in pieces that end at these places. */
function piecesOf(bytes: Buffer, ends: readonly number[]): readonly Buffer[] {
  const places = [0, ...ends.filter((end) => end < bytes.length).toSorted((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end));
}

function everything(reader: MessageReader): string[] {
  const found: string[] = [];
  for (let message = reader.next(); message !== undefined; message = reader.next()) {
    if (message === 'too_large') return [...found, message];
    found.push(message.toString('hex'));
  }
  return found;
}

test('messages come out as they went in, wherever the pieces end', () => {
  fc.assert(
    fc.property(messages, cuts, (sent, ends) => {
      const reader = new MessageReader();
      const got = piecesOf(Buffer.concat(sent.map(framedMessage)), ends).flatMap((piece) => {
        reader.add(piece);
        return everything(reader);
      });
      expect(got).toEqual(sent.map((message) => Buffer.from(message).toString('hex')));
    }),
  );
});

test('a message of the largest size is given out with its last byte, and not before', () => {
  const bytes = framedMessage(Buffer.alloc(limits.agent.grpcMessageBytes, 7));
  const ends = Array.from(bytes.keys()).filter(
    (place) => place < 10 || place % 500 === 0 || place === bytes.length - 1,
  );
  const reader = new MessageReader();
  const got = piecesOf(bytes, ends).map((piece) => {
    reader.add(piece);
    return reader.next();
  });
  expect(got.pop()).toEqual(bytes.subarray(messageHeadBytes));
  expect(new Set(got)).toEqual(new Set([undefined]));
});

test('a message that says it is larger is refused by its head, behind those before it', () => {
  const head = Buffer.alloc(messageHeadBytes);
  head.writeUInt32BE(limits.agent.grpcMessageBytes + 1, 1);
  const reader = new MessageReader();
  reader.add(Buffer.concat([framedMessage(Buffer.of(1)), head]));
  expect(everything(reader)).toEqual(['01', 'too_large']);
});
