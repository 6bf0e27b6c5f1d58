/**
 * The keys that an agent reads from its control PSK. The derivations are in `src/kernel/control-psk.ts`, which the
 * issuing side uses too. Implements `docs/contract/agent-protocol.md#psk-verifier-service-identity`.
 */
import { decodeControlPsk, deriveNodeSecrets, pskFingerprint } from '../kernel/control-psk.js';
import { x25519PairOf } from '../kernel/crypto/crypto.js';
import type { X25519KeyPair } from '../kernel/crypto/crypto.js';
import { ok } from '../kernel/result.js';
import type { Result } from '../kernel/result.js';

/** Everything that an agent needs for the handshake. */
export interface AgentKeys {
  readonly nodeStatic: X25519KeyPair;
  readonly psk: Uint8Array;
  readonly servicePublic: Uint8Array;
  /** As REST shows it, so that an operator can compare. */
  readonly fingerprint: string;
}

/** Reads `SVC_CONTROL_PSK`; the error says what was expected and never repeats the input. */
export function agentKeysFrom(controlPsk: string): Result<AgentKeys, string> {
  const decoded = decodeControlPsk(controlPsk);
  if (!decoded.ok) return decoded;
  const secrets = deriveNodeSecrets(decoded.value.secret);
  const nodeStatic = x25519PairOf(secrets.nodeStaticPrivate);
  secrets.nodeStaticPrivate.fill(0);
  decoded.value.secret.fill(0);
  return ok({
    nodeStatic,
    psk: secrets.psk,
    servicePublic: decoded.value.servicePublic,
    fingerprint: pskFingerprint(nodeStatic.publicKey),
  });
}
