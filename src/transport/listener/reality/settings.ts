/** An operator's settings of REALITY (`docs/contract/configuration.md`). The variables are read in `src/app/config/`. */
import type { HostPort } from '../../../kernel/host-port.js';
import type { X25519KeyPair } from '../../../kernel/crypto/crypto.js';

export interface RealitySettings {
  readonly keys: X25519KeyPair;
  /** Names that a ClientHello may ask for, in lower case. */
  readonly serverNames: readonly string[];
  /** Hexadecimal, each an even number of digits, at most 16. */
  readonly shortIds: readonly string[];
  /** The server that strangers see. */
  readonly target: HostPort;
  /** By how much the clock of a client may differ, in milliseconds. */
  readonly maxTimeDiffMs: number;
  /** Whether the preface of h2c is admitted beside REALITY. */
  readonly allowH2c: boolean;
  /** How long the target is watched after a handshake for unsolicited data, in milliseconds; default 5 s. */
  readonly probeMs?: number;
  /** Connections that are mirrored to the target at once; default 4096. */
  readonly mirrored?: number;
}
