/**
 * The settings of REALITY: of the service's own listener (`docs/contract/configuration.md`), whose variables are read in
 * `src/app/config/`, and of a hop (`docs/data-plane.md#reality`).
 */
import type { HostPort } from '../../../kernel/host-port.js';
import type { X25519KeyPair } from '../../../kernel/crypto/crypto.js';

/** Of anybody who takes clients by REALITY. */
export interface RealityServer {
  readonly keys: X25519KeyPair;
  /** Names that a ClientHello may ask for, in lower case. */
  readonly serverNames: readonly string[];
  /** Hexadecimal, each an even number of digits, at most 16. */
  readonly shortIds: readonly string[];
  /** The server that strangers see. */
  readonly target: HostPort;
  /** By how much the clock of a client may differ, in milliseconds. */
  readonly maxTimeDiffMs: number;
  /** How long the target is watched after a handshake for unsolicited data, in milliseconds; default 5 s. */
  readonly probeMs?: number;
}

/** Of the service's listener. */
export interface RealitySettings extends RealityServer {
  /** Whether the preface of h2c is admitted beside REALITY. */
  readonly allowH2c: boolean;
  /** Connections that are mirrored to the target at once; default 4096. */
  readonly mirrored?: number;
}
