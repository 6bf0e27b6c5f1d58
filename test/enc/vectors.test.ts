/** UDP ENC byte for byte, against vectors that an independent Noise library made. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { answerPacket, handshakePacket, keyIdOf, readPacket } from '../../src/channel/enc/packets.js';
import { createEncSession, encParty, type EncSession } from '../../src/channel/enc/session.js';
import { initiate, respond } from '../../src/channel/noise/handshake.js';
import { x25519PairOf } from '../../src/kernel/crypto/crypto.js';
import { valueOf } from '../support/noise-parties.js';

interface Sent {
  readonly from: 'dialler' | 'hop';
  readonly counter: number;
  readonly kind: number;
  readonly content: string;
  readonly packet: string;
}
interface Handshake {
  readonly dialler_ephemeral_private_key: string;
  readonly hop_ephemeral_private_key: string;
  readonly dialler_index: number;
  readonly hop_index: number;
  readonly handshake_hash: string;
  readonly packets: readonly Sent[];
}
const file = JSON.parse(readFileSync(new URL('../vectors/enc-vectors.json', import.meta.url), 'utf8')) as Handshake & {
  readonly hop_private_key: string;
  readonly hop_public_key: string;
  readonly key_id: string;
  readonly handshake_packet: string;
  readonly answer_packet: string;
  readonly rekey: Handshake;
};
const bytes = (hex: string): Buffer => Buffer.from(hex, 'hex');
const hex = (data: Uint8Array): string => Buffer.from(data).toString('hex');
const hop = x25519PairOf(bytes(file.hop_private_key));

function shakeHands(of: Handshake) {
  const ephemeral = (key: string) => ({ ephemeral: x25519PairOf(bytes(key)) });
  const opened = valueOf(
    initiate(
      encParty({ remoteStatic: hop.publicKey, ...ephemeral(of.dialler_ephemeral_private_key) }),
      Buffer.alloc(0),
    ),
  );
  const answering = valueOf(
    respond(encParty({ localStatic: hop, ...ephemeral(of.hop_ephemeral_private_key) }), opened.message),
  );
  const answered = valueOf(answering.finish(Buffer.alloc(0)));
  const finished = valueOf(opened.finish(answered.message));
  expect([hex(finished.handshakeHash), hex(answered.handshakeHash)]).toEqual([of.handshake_hash, of.handshake_hash]);
  const indexes = { dialler: of.dialler_index, hop: of.hop_index };
  const sides = {
    dialler: createEncSession(finished, { own: indexes.dialler, peer: indexes.hop }, 0),
    hop: createEncSession(answered, { own: indexes.hop, peer: indexes.dialler }, 0),
  };
  return { message1: opened.message, message2: answered.message, sides };
}

function exchange(sides: { readonly dialler: EncSession; readonly hop: EncSession }, packets: readonly Sent[]): void {
  for (const { from, counter, kind, content, packet } of packets) {
    const [by, to] = from === 'dialler' ? [sides.dialler, sides.hop] : [sides.hop, sides.dialler];
    expect(hex(by.seal(kind, bytes(content), 0) ?? Buffer.alloc(0))).toBe(packet);
    const read = readPacket(bytes(packet));
    if (read?.kind !== 'transport') throw new Error('not a transport packet');
    expect([read.receiver, read.counter]).toEqual([to.ownIndex, counter]);
    const opened = to.open(read.counter, read.ciphertext, 0);
    expect([opened?.kind, hex(opened?.content ?? Buffer.alloc(0))]).toEqual([kind, content]);
  }
}

describe('the vectors of UDP ENC', () => {
  it('have this key id', () => {
    expect([hex(hop.publicKey), keyIdOf(hop.publicKey)]).toEqual([file.hop_public_key, file.key_id]);
  });

  it('are reproduced from the handshake to the last packet', () => {
    const { message1, message2, sides } = shakeHands(file);
    expect(hex(handshakePacket(file.key_id, file.dialler_index, message1))).toBe(file.handshake_packet);
    expect(hex(answerPacket(file.dialler_index, file.hop_index, message2))).toBe(file.answer_packet);
    exchange(sides, file.packets);
  });

  it('are reproduced for the session after a rekey, whose handshake travels in the first one', () => {
    const { message1, message2, sides } = shakeHands(file.rekey);
    const [asked, answered] = file.packets.slice(-2);
    expect(asked?.content.endsWith(hex(message1))).toBe(true);
    expect(answered?.content.endsWith(hex(message2))).toBe(true);
    exchange(sides, file.rekey.packets);
  });
});
