/**
 * The settings of REALITY: for the service's own listener (`docs/contract/configuration.md`), whose variables
 * `src/app/config/` reads, and for a hop (`docs/data-plane.md#reality`).
 */
import type { HostPort } from '../../../kernel/host-port.js';
import type { X25519KeyPair } from '../../../kernel/crypto/crypto.js';

/** For everything that accepts clients by REALITY. */
export interface RealityServer {
  readonly keys: X25519KeyPair;
  /** Names that a ClientHello may ask for, in lower case. */
  readonly serverNames: readonly string[];
  /** Hexadecimal, each an even number of digits, at most 16. */
  readonly shortIds: readonly string[];
  /** The server that strangers see. */
  readonly target: HostPort;
  /** How far a client's clock may be off, in milliseconds. */
  readonly maxTimeDiffMs: number;
  /** How long the target is watched after a handshake for unsolicited data, in milliseconds; default 5 s. */
  readonly probeMs?: number;
}

/** For the service's listener. */
export interface RealitySettings extends RealityServer {
  /** Whether the h2c preface is accepted as well as REALITY. */
  readonly allowH2c: boolean;
  /** How many connections may be mirrored to the target at once; default 4096. */
  readonly mirrored?: number;
}
