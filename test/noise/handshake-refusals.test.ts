import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { controlPrologue, initiate, respond, sessionIdOf } from '../../src/channel/noise/handshake.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { flipped, handshakeParties, valueOf } from '../support/noise-parties.js';

/** Points of small order on curve25519 and its twist, as encodings of u (RFC 7748, section 6.1). */
const weakPoints = [
  '00'.repeat(32),
  `01${'00'.repeat(31)}`,
  'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800',
  '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157',
  `ec${'ff'.repeat(30)}7f`,
].map((hex) => Uint8Array.from(Buffer.from(hex, 'hex')));

describe('the handshake', () => {
  it('refuses both messages with any byte altered', () => {
    const { agent, service } = handshakeParties();
    const opened = valueOf(initiate(agent, randomBytes(24)));
    for (let index = 0; index < opened.message.length; index += 1) {
      expect(respond(service, flipped(opened.message, index)).ok, `byte ${index} of message 1`).toBe(false);
    }
    const reply = valueOf(valueOf(respond(service, opened.message)).finish(randomBytes(24))).message;
    for (let index = 0; index < reply.length; index += 1) {
      const fresh = valueOf(initiate({ ...agent, ephemeral: generateX25519() }, new Uint8Array(0)));
      const answer = valueOf(valueOf(respond(service, fresh.message)).finish(randomBytes(24))).message;
      expect(fresh.finish(flipped(answer, index)).ok, `byte ${index} of message 2`).toBe(false);
    }
    expect(opened.finish(reply).ok).toBe(true);
  });

  it('refuses message 1 of any other length', () => {
    const { agent, service } = handshakeParties();
    const opened = valueOf(initiate(agent, new Uint8Array(0)));
    expect(opened.message.length).toBe(48);
    for (let length = 0; length < 48; length += 1) {
      expect(respond(service, opened.message.subarray(0, length))).toEqual({ ok: false, error: 'wrong_length' });
    }
    expect(respond(service, Buffer.concat([opened.message, Buffer.alloc(1)]))).toEqual({ ok: false, error: 'bad_tag' });
    expect(respond(service, new Uint8Array(65_536))).toEqual({ ok: false, error: 'wrong_length' });
    expect(initiate(agent, new Uint8Array(65_488))).toEqual({ ok: false, error: 'wrong_length' });
  });

  it('takes messages up to the largest that Noise allows', () => {
    const { agent, service } = handshakeParties();
    const largest = valueOf(initiate(agent, new Uint8Array(65_487)));
    expect(largest.message.length).toBe(65_535);
    const responded = valueOf(respond(service, largest.message));
    expect(responded.payload.length).toBe(65_487);
    const reply = valueOf(responded.finish(new Uint8Array(65_487)));
    expect(reply.message.length).toBe(65_535);
    expect(valueOf(largest.finish(reply.message)).payload.length).toBe(65_487);
  });

  it('refuses a PSK of another length before anything is sent', () => {
    const { agent } = handshakeParties();
    for (const length of [0, 31, 33]) {
      expect(() => initiate({ ...agent, psk: randomBytes(length) }, new Uint8Array(0))).toThrow(RangeError);
    }
  });

  it('names a session by the first 16 bytes of its hash', () => {
    const hash = randomBytes(32);
    expect(sessionIdOf(hash)).toEqual(new Uint8Array(hash.subarray(0, 16)));
  });

  it('refuses keys of small order from either side', () => {
    const { agent, service } = handshakeParties();
    for (const point of weakPoints) {
      const message = Buffer.concat([point, randomBytes(16)]);
      expect(respond(service, message)).toEqual({ ok: false, error: 'weak_public_key' });
      expect(initiate({ ...agent, remoteStatic: point }, new Uint8Array(0))).toEqual({
        ok: false,
        error: 'weak_public_key',
      });
      expect(valueOf(initiate(agent, new Uint8Array(0))).finish(message)).toEqual({
        ok: false,
        error: 'weak_public_key',
      });
    }
  });

  it('answers a wrong PSK, a wrong node, a wrong service and an unknown node alike', () => {
    const { agent, service } = handshakeParties('a');
    const message = valueOf(initiate(agent, randomBytes(40))).message;
    const others = [
      { ...service, psk: randomBytes(32) },
      { ...service, prologue: controlPrologue('b') },
      { ...service, localStatic: generateX25519() },
      { ...service, remoteStatic: generateX25519().publicKey },
      { ...service, psk: randomBytes(32), remoteStatic: generateX25519().publicKey },
    ];
    for (const other of others) expect(respond(other, message)).toEqual({ ok: false, error: 'bad_tag' });
    expect(respond(service, message).ok).toBe(true);
  });

  it('lets nobody who holds only the stored verifier stand for the node, nor for the service', () => {
    const { agent, service } = handshakeParties();
    // The verifier is the psk and the node's public key; the service's public key is no secret. Both private keys are missing.
    const asNode = { ...agent, localStatic: { ...generateX25519(), publicKey: agent.localStatic.publicKey } };
    expect(respond(service, valueOf(initiate(asNode, randomBytes(24))).message)).toEqual({
      ok: false,
      error: 'bad_tag',
    });
    const asService = { ...service, localStatic: { ...generateX25519(), publicKey: service.localStatic.publicKey } };
    const genuine = valueOf(initiate(agent, randomBytes(24)));
    // What was recorded of a genuine session begins with the same message.
    expect(respond(asService, genuine.message)).toEqual({ ok: false, error: 'bad_tag' });
    expect(respond(service, genuine.message).ok).toBe(true);
  });

  it('performs each step only once', () => {
    const { agent, service } = handshakeParties();
    const opened = valueOf(initiate(agent, new Uint8Array(0)));
    const answering = valueOf(respond(service, opened.message));
    const reply = valueOf(answering.finish(new Uint8Array(0)));
    expect(answering.finish(new Uint8Array(0))).toEqual({ ok: false, error: 'finished' });
    expect(opened.finish(reply.message).ok).toBe(true);
    expect(opened.finish(reply.message)).toEqual({ ok: false, error: 'finished' });
    const dropped = valueOf(respond(service, valueOf(initiate(agent, new Uint8Array(0))).message));
    dropped.discard();
    expect(dropped.finish(new Uint8Array(0))).toEqual({ ok: false, error: 'finished' });
  });

  it('separates the node id in the prologue with a zero byte', () => {
    expect(Buffer.from(controlPrologue('nöde')).toString('hex')).toBe(
      `${Buffer.from('svc-control-v1').toString('hex')}00${Buffer.from('nöde', 'utf8').toString('hex')}`,
    );
  });
});
