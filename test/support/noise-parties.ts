/** Both ends of a handshake with random keys, and shortcuts that fail a test when a step is refused. */
import { randomBytes } from 'node:crypto';
import { generateX25519 } from '../../src/kernel/x25519.js';
import { controlPrologue } from '../../src/noise/handshake.js';
import type { HandshakeParty } from '../../src/noise/handshake.js';
import type { Result } from '../../src/kernel/result.js';

export function handshakeParties(nodeId = 'node-1'): { agent: HandshakeParty; service: HandshakeParty } {
  const agentStatic = generateX25519();
  const serviceStatic = generateX25519();
  const common = { prologue: controlPrologue(nodeId), psk: randomBytes(32) };
  return {
    agent: { ...common, localStatic: agentStatic, remoteStatic: serviceStatic.publicKey },
    service: { ...common, localStatic: serviceStatic, remoteStatic: agentStatic.publicKey },
  };
}

export function valueOf<T, E>(result: Result<T, E>): T {
  if (!result.ok) throw new Error(`unexpected refusal: ${JSON.stringify(result.error)}`);
  return result.value;
}

export function flipped(bytes: Uint8Array, index: number, bit = 0x01): Uint8Array {
  const copy = Uint8Array.from(bytes);
  copy[index] = (copy[index] ?? 0) ^ bit;
  return copy;
}
