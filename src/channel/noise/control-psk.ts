/**
 * The control PSK as agents and the service share it: its text form, the keys derived from its secret, its fingerprint,
 * and the keys that an agent needs from it. `src/security/psk.ts` issues and stores PSKs. Implements
 * `docs/contract/agent-protocol.md#psk-verifier-service-identity`.
 */
import { hkdfSha256, sha256, x25519PairOf, type X25519KeyPair } from '../../kernel/crypto/crypto.js';
import { err, ok, type Result } from '../../kernel/result.js';

const prefix = 'svcpsk1_';
const halfBytes = 32;
const salt = Buffer.from('svc-control-v1', 'latin1');
const staticInfo = 'node-static';
const pskInfo = 'noise-psk';
/** 64 bytes are 86 characters of unpadded base64url. */
const pskPattern = /^svcpsk1_[A-Za-z0-9_-]{86}$/;

interface ControlPsk {
  /** 32 random bytes, known only to the agent once the PSK has been shown. */
  readonly secret: Uint8Array;
  /** The service's X25519 public key, which the agent pins. */
  readonly servicePublic: Uint8Array;
}

interface NodeSecrets {
  readonly nodeStaticPrivate: Uint8Array;
  readonly psk: Uint8Array;
}

/**
 * The text form that an operator gives to an agent.
 * @throws RangeError unless each half has 32 bytes
 */
export function encodeControlPsk(controlPsk: ControlPsk): string {
  requireHalf(controlPsk.secret, 'control PSK secret');
  requireHalf(controlPsk.servicePublic, 'service public key');
  return prefix + Buffer.concat([controlPsk.secret, controlPsk.servicePublic]).toString('base64url');
}

/**
 * Parses the text form; the error says what was expected and never repeats the input.
 * @internal exported for tests
 */
export function decodeControlPsk(text: string): Result<ControlPsk, string> {
  const bytes = pskPattern.test(text) ? Buffer.from(text.slice(prefix.length), 'base64url') : undefined;
  // The last character carries four unused bits. They must be zero, so that a PSK has one spelling.
  if (bytes === undefined || prefix + bytes.toString('base64url') !== text) {
    return err('expected a control PSK: svcpsk1_ followed by 86 characters of base64url');
  }
  return ok({
    secret: Uint8Array.from(bytes.subarray(0, halfBytes)),
    servicePublic: Uint8Array.from(bytes.subarray(halfBytes)),
  });
}

/**
 * The keys that both sides derive from the secret of a control PSK.
 * @throws RangeError unless the secret has 32 bytes
 */
export function deriveNodeSecrets(secret: Uint8Array): NodeSecrets {
  requireHalf(secret, 'control PSK secret');
  const derive = (info: string): Uint8Array => hkdfSha256(salt, secret, Buffer.from(info, 'latin1'), halfBytes);
  return { nodeStaticPrivate: derive(staticInfo), psk: derive(pskInfo) };
}

/** The fingerprint that operators compare. It covers the node's public key, so it reveals nothing about the PSK. */
export function pskFingerprint(nodeStaticPublic: Uint8Array): string {
  return `SHA256:${Buffer.from(sha256(nodeStaticPublic)).toString('base64url')}`;
}

/** Everything an agent needs for the handshake. */
export interface AgentKeys {
  readonly nodeStatic: X25519KeyPair;
  readonly psk: Uint8Array;
  readonly servicePublic: Uint8Array;
  /** In the form that REST shows, so that an operator can compare. */
  readonly fingerprint: string;
}

/** Parses `SVC_CONTROL_PSK`; the error says what was expected and never repeats the input. */
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

function requireHalf(bytes: Uint8Array, label: string): void {
  if (bytes.length !== halfBytes) throw new RangeError(`${label}: expected 32 bytes, got ${bytes.length}`);
}
