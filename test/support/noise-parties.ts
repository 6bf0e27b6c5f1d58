/** Both parties of a handshake with random keys, and helpers for results and tampered bytes. */
import { randomBytes } from 'node:crypto';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { controlPrologue, type HandshakeParty } from '../../src/channel/noise/handshake.js';
import type { Result } from '../../src/kernel/result.js';

/** A party of the control session's pattern, which knows everything. */
export type FullParty = Required<Omit<HandshakeParty, 'pattern' | 'ephemeral'>>;

export function handshakeParties(nodeId = 'node-1'): { agent: FullParty; service: FullParty } {
  const agentStatic = generateX25519();
  const serviceStatic = generateX25519();
  const common = { prologue: controlPrologue(nodeId), psk: randomBytes(32) };
  return {
    agent: { ...common, localStatic: agentStatic, remoteStatic: serviceStatic.publicKey },
    service: { ...common, localStatic: serviceStatic, remoteStatic: agentStatic.publicKey },
  };
}

/** The value of a result; fails the test if there is an error instead. */
export function valueOf<T, E>(result: Result<T, E>): T {
  if (!result.ok) throw new Error(`unexpected error: ${JSON.stringify(result.error)}`);
  return result.value;
}

/** A copy with one bit flipped. */
export function flipped(bytes: Uint8Array, index: number, bit = 0x01): Uint8Array {
  const copy = Uint8Array.from(bytes);
  copy[index] = (copy[index] ?? 0) ^ bit;
  return copy;
}
