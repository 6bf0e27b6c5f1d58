/** Numbers of REALITY that the contract does not state. */
const KiB = 1024;
const MiB = 1024 * KiB;
const SECOND = 1000;

export const tuning = {
  /** How long a dial of the target may take, including the wait for its turn. */
  dialMs: 5 * SECOND,
  /** Simultaneous dials; more wait. */
  dials: 256,
  dialsWaiting: 4096,
  /** From the ClientHello of an agent to the end of the target's flight. */
  targetFlightMs: 5 * SECOND,
  /** From the answer to an agent to its Finished, unless the target ends it sooner. */
  finishedMs: 120 * SECOND,
  /** Records of the target that are imitated: while waiting for an agent's Finished, and after it. */
  recordsAfterFlight: 64,
  /** Meaningless records that an agent may send before its Finished: as many as OpenSSL and Go allow. */
  uselessRecords: 32,
  /** Records that a ClientHello may be split over: browsers send one. */
  clientHelloRecords: 64,
  /** How long an agent waits to learn what other instances have seen, while the target's flight arrives. */
  sharedHellosMs: 500,
  /** Agents' hellos that are remembered, to recognise replays. */
  replayEntries: 1_000_000,
  /** Connections mirrored to the target at once, each with one connection to it; one more closes the oldest. */
  mirrored: 4096,
  /** Bytes of one mirrored connection, both directions together. */
  mirroredBytes: 256 * MiB,
  /** Limits while more than half of them are in use: how long one may stay, and how long it may be silent both ways. */
  mirroredMs: 600 * SECOND,
  mirroredIdleMs: 120 * SECOND,
  /** How long the target is watched after a handshake for unsolicited data. */
  probeMs: 5 * SECOND,
  probeHandshakeMs: 5 * SECOND,
  /** Visits of the target at a time; the majority counts, because a single one may be an exception. */
  probes: 3,
  /** How long an agent waits for the first probe of the target, beyond `probeMs`. */
  probeWaitMs: 1 * SECOND,
  /** Until the next attempt, when the target could not be probed. */
  probeRetryMs: 60 * SECOND,
  /** The shortest time between two attempts, even when a client has met a failure. */
  probeSoonMs: 5 * SECOND,
  /** How often clients' failures are checked. */
  probeFailedMs: 1 * SECOND,
  /** Until a probe is repeated, since a target may change. */
  probeAgainMs: 6 * 3600 * SECOND,
} as const;
