/**
 * Reads and writes the datagrams of UDP ENC: three kinds, told apart by their first byte and length. Does not touch
 * their secrets, which are Noise messages inside. Pure; accepts any bytes. Implements `docs/data-plane.md#packets`.
 */
import { sha256, x25519KeyBytes } from '../../kernel/crypto/crypto.js';
import { tagBytes } from '../noise/failure.js';

const packetType = { handshake: 1, answer: 2, transport: 3 } as const;

const keyIdBytes = 8;
export const indexBytes = 4;
const counterBytes = 8;
/** Both Noise messages of a handshake: an ephemeral key, and the tag of an empty payload. */
export const noiseMessageBytes = x25519KeyBytes + tagBytes;
const handshakeBytes = 1 + keyIdBytes + indexBytes + noiseMessageBytes;
const answerBytes = 1 + 2 * indexBytes + noiseMessageBytes;
const transportHeaderBytes = 1 + indexBytes + counterBytes;
/** Every plaintext has at least its kind byte. */
const transportMinBytes = transportHeaderBytes + 1 + tagBytes;

const keyIdLabel = Buffer.from('svc-enc-v1 key', 'latin1');

/** The id, in hexadecimal, by which a listener with several keys finds the key of a handshake. */
export function keyIdOf(publicKey: Uint8Array): string {
  return Buffer.from(sha256(keyIdLabel, publicKey)).toString('hex', 0, keyIdBytes);
}

export type Packet =
  | { readonly kind: 'handshake'; readonly keyId: string; readonly sender: number; readonly message: Buffer }
  | { readonly kind: 'answer'; readonly receiver: number; readonly sender: number; readonly message: Buffer }
  | { readonly kind: 'transport'; readonly receiver: number; readonly counter: number; readonly ciphertext: Buffer };

/** Undefined for bytes that have none of the three shapes. */
export function readPacket(bytes: Buffer): Packet | undefined {
  switch (bytes[0]) {
    case packetType.handshake:
      if (bytes.length !== handshakeBytes) return undefined;
      return {
        kind: 'handshake',
        keyId: bytes.toString('hex', 1, 1 + keyIdBytes),
        sender: bytes.readUInt32BE(1 + keyIdBytes),
        message: bytes.subarray(-noiseMessageBytes),
      };
    case packetType.answer:
      if (bytes.length !== answerBytes) return undefined;
      return {
        kind: 'answer',
        receiver: bytes.readUInt32BE(1),
        sender: bytes.readUInt32BE(1 + indexBytes),
        message: bytes.subarray(-noiseMessageBytes),
      };
    case packetType.transport: {
      if (bytes.length < transportMinBytes) return undefined;
      const counter = bytes.readBigUInt64BE(1 + indexBytes);
      if (counter > BigInt(Number.MAX_SAFE_INTEGER)) return undefined;
      return {
        kind: 'transport',
        receiver: bytes.readUInt32BE(1),
        counter: Number(counter),
        ciphertext: bytes.subarray(transportHeaderBytes),
      };
    }
    default:
      return undefined;
  }
}

export function handshakePacket(keyId: string, sender: number, message: Uint8Array): Buffer {
  return Buffer.concat([Uint8Array.of(packetType.handshake), Buffer.from(keyId, 'hex'), index(sender), message]);
}

export function answerPacket(receiver: number, sender: number, message: Uint8Array): Buffer {
  return Buffer.concat([Uint8Array.of(packetType.answer), index(receiver), index(sender), message]);
}

export function transportPacket(receiver: number, counter: number, ciphertext: Uint8Array): Buffer {
  const packet = Buffer.allocUnsafe(transportHeaderBytes + ciphertext.length);
  packet[0] = packetType.transport;
  packet.writeUInt32BE(receiver, 1);
  packet.writeBigUInt64BE(BigInt(counter), 1 + indexBytes);
  packet.set(ciphertext, transportHeaderBytes);
  return packet;
}

export function index(value: number): Buffer {
  const bytes = Buffer.alloc(indexBytes);
  bytes.writeUInt32BE(value);
  return bytes;
}
