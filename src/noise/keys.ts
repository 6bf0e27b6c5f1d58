/**
 * The keys that an agent reads from its control PSK. The derivations are in `src/kernel/control-psk.ts`, which the
 * issuing side uses too. Implements `docs/contract/agent-protocol.md#psk-verifier-service-identity`.
 */
import { decodeControlPsk, deriveNodeSecrets, pskFingerprint } from '../kernel/control-psk.js';
import { ok } from '../kernel/result.js';
import type { Result } from '../kernel/result.js';
import { importX25519Private, importX25519Public } from '../kernel/x25519.js';
import type { X25519KeyPair, X25519PublicKey } from '../kernel/x25519.js';

/** Everything that an agent needs for the handshake. */
export interface AgentKeys {
  readonly nodeStatic: X25519KeyPair;
  readonly psk: Uint8Array;
  readonly servicePublic: X25519PublicKey;
  /** As REST shows it, so that an operator can compare. */
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
