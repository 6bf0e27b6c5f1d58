/**
 * Key material of the control session: what an agent makes of its control PSK, and X25519 keys for both sides.
 * The derivations themselves are in `src/kernel/control-psk.ts`, shared with the service's issuing side.
 * Implements `docs/contract/agent-protocol.md`, "PSK, verifier, service identity".
 */
import { decodeControlPsk, deriveNodeSecrets, pskFingerprint } from '../kernel/control-psk.js';
import { ok } from '../kernel/result.js';
import type { Result } from '../kernel/result.js';
import { importX25519Private, importX25519Public } from '../kernel/x25519.js';
import type { X25519KeyPair, X25519PublicKey } from '../kernel/x25519.js';

export { decodeControlPsk, deriveNodeSecrets, encodeControlPsk, pskFingerprint } from '../kernel/control-psk.js';
export { exportX25519Private, generateX25519, importX25519Private, importX25519Public } from '../kernel/x25519.js';
export type { X25519KeyPair, X25519PublicKey } from '../kernel/x25519.js';

/** Everything an agent needs to shake hands. */
export interface AgentKeys {
  readonly nodeStatic: X25519KeyPair;
  readonly psk: Uint8Array;
  readonly servicePublic: X25519PublicKey;
  /** As the console shows it, so that an operator can compare. */
  readonly fingerprint: string;
}

/** Reads `SVC_CONTROL_PSK`; the error says what was expected and never repeats the input. */
export function agentKeysFrom(controlPsk: string): Result<AgentKeys, string> {
  const decoded = decodeControlPsk(controlPsk);
  if (!decoded.ok) return decoded;
  const secrets = deriveNodeSecrets(decoded.value.secret);
  const nodeStatic = importX25519Private(secrets.nodeStaticPrivate);
  secrets.nodeStaticPrivate.fill(0);
  decoded.value.secret.fill(0);
  return ok({
    nodeStatic,
    psk: secrets.psk,
    servicePublic: importX25519Public(decoded.value.servicePublic),
    fingerprint: pskFingerprint(nodeStatic.publicKey.bytes),
  });
}
