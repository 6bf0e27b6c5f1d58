import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { kkPsk0, type HandshakePattern } from '../../src/channel/noise/handshake.js';
import { cryptoLibraries, overLibrary } from '../support/crypto-libraries.js';
import { valueOf } from '../support/noise-parties.js';

interface Vector {
  readonly protocol_name: string;
  readonly init_prologue: string;
  readonly init_psks: readonly string[];
  readonly init_static?: string;
  readonly init_ephemeral: string;
  readonly init_remote_static?: string;
  readonly resp_static?: string;
  readonly resp_ephemeral: string;
  readonly resp_remote_static?: string;
  readonly handshake_hash: string;
  readonly messages: readonly { readonly payload: string; readonly ciphertext: string }[];
}

const file = JSON.parse(readFileSync(new URL('../vectors/noise-vectors.json', import.meta.url), 'utf8')) as {
  vectors: Vector[];
};
const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, 'hex'));
const hex = (data: Uint8Array): string => Buffer.from(data).toString('hex');
const patterns: readonly HandshakePattern[] = [
  kkPsk0,
  {
    protocolName: 'Noise_KNpsk0_25519_ChaChaPoly_SHA256',
    initiatorStaticKnown: true,
    responderStaticKnown: false,
    messages: [
      ['psk', 'e'],
      ['e', 'ee', 'se'],
    ],
  },
  {
    protocolName: 'Noise_KKpsk2_25519_ChaChaPoly_SHA256',
    initiatorStaticKnown: true,
    responderStaticKnown: true,
    messages: [
      ['e', 'es', 'ss'],
      ['e', 'ee', 'se', 'psk'],
    ],
  },
  {
    protocolName: 'Noise_NKpsk2_25519_ChaChaPoly_SHA256',
    initiatorStaticKnown: false,
    responderStaticKnown: true,
    messages: [
      ['e', 'es'],
      ['e', 'ee', 'psk'],
    ],
  },
];

describe.each(cryptoLibraries)('published Noise vectors, byte for byte, over %s', async (library) => {
  const { initiate, respond } = await overLibrary(library, () => import('../../src/channel/noise/handshake.js'));
  const { generateX25519, x25519PairOf } = await import('../../src/kernel/crypto/crypto.js');
  const pair = (hexKey: string | undefined) => (hexKey === undefined ? generateX25519() : x25519PairOf(bytes(hexKey)));
  const remote = (hexKey: string | undefined) => (hexKey === undefined ? generateX25519().publicKey : bytes(hexKey));

  for (const pattern of patterns) {
    it(pattern.protocolName, () => {
      const vector = file.vectors.find((entry) => entry.protocol_name === pattern.protocolName);
      if (vector === undefined) throw new Error('the vector is missing');
      const prologue = bytes(vector.init_prologue);
      const psk = bytes(vector.init_psks[0] ?? '');
      const [first, second, ...transport] = vector.messages;
      if (first === undefined || second === undefined) throw new Error('the vector has no handshake');

      const opened = valueOf(
        initiate(
          {
            pattern,
            prologue,
            psk,
            localStatic: pair(vector.init_static),
            remoteStatic: remote(vector.init_remote_static),
            ephemeral: pair(vector.init_ephemeral),
          },
          bytes(first.payload),
        ),
      );
      expect(hex(opened.message)).toBe(first.ciphertext);
      const answering = valueOf(
        respond(
          {
            pattern,
            prologue,
            psk,
            localStatic: pair(vector.resp_static),
            remoteStatic: remote(vector.resp_remote_static),
            ephemeral: pair(vector.resp_ephemeral),
          },
          opened.message,
        ),
      );
      expect(hex(answering.payload)).toBe(first.payload);
      const responder = valueOf(answering.finish(bytes(second.payload)));
      expect(hex(responder.message)).toBe(second.ciphertext);
      const initiator = valueOf(opened.finish(responder.message));
      expect(hex(initiator.payload)).toBe(second.payload);
      expect(hex(initiator.handshakeHash)).toBe(vector.handshake_hash);
      expect(hex(responder.handshakeHash)).toBe(vector.handshake_hash);

      expect(transport.length).toBeGreaterThan(2);
      transport.forEach((message, index) => {
        const [from, to] = index % 2 === 0 ? [initiator, responder] : [responder, initiator];
        const sequence = Math.floor(index / 2);
        const ciphertext = valueOf(from.send.encrypt(sequence, bytes(message.payload)));
        expect(hex(ciphertext)).toBe(message.ciphertext);
        expect(hex(valueOf(to.receive.decrypt(sequence, ciphertext)))).toBe(message.payload);
      });
    });
  }
});
