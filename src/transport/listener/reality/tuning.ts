/** Numbers of REALITY that the contract does not state. */
const KiB = 1024;
const MiB = 1024 * KiB;
const SECOND = 1000;

export const tuning = {
  /** How long a dial of the target may take, the wait for a place included. */
  dialMs: 5 * SECOND,
  /** Dials at once; more wait. */
  dials: 256,
  dialsWaiting: 4096,
  /** Largest ClientHello; browsers send 2 KiB. */
  clientHelloMaxBytes: 16 * KiB,
  /** From the ClientHello of an agent to the end of the target's flight. */
  targetFlightMs: 5 * SECOND,
  /** From the answer to an agent to its Finished, if the target does not end it sooner. */
  finishedMs: 120 * SECOND,
  /** Records of the target that are imitated while an agent's Finished is awaited. */
  recordsAfterFlight: 64,
  /** Records without meaning that an agent may send before its Finished: as many as OpenSSL and Go allow. */
  uselessRecords: 32,
  /** Records that a ClientHello may come in: browsers send one. */
  clientHelloRecords: 64,
  /** How long an agent waits for what other instances have seen, beside the target's flight. */
  sharedHellosMs: 500,
  /** Hellos of agents that are remembered, to notice a repetition. */
  replayEntries: 1_000_000,
  /** Connections that are mirrored to the target at once, each with one connection to it; for one more the oldest is closed. */
  mirrored: 4096,
  /** Bytes of one mirrored connection, both directions together. */
  mirroredBytes: 256 * MiB,
  /** While more than half of them are there: how long one may stay, and how long without a byte either way. */
  mirroredMs: 600 * SECOND,
  mirroredIdleMs: 120 * SECOND,
  /** How long the target is watched after a handshake for unsolicited data. */
  probeMs: 5 * SECOND,
  probeHandshakeMs: 5 * SECOND,
  /** Visits of the target at a time, of which the majority counts: a single one may meet an exception. */
  probes: 3,
  /** How long an agent waits for the first probe of the target, beyond `probeMs`. */
  probeWaitMs: 1 * SECOND,
  /** Until the next try, when the target could not be probed. */
  probeRetryMs: 60 * SECOND,
  /** At least between two tries, also when a client has met a failure. */
  probeSoonMs: 5 * SECOND,
  /** How often failures of clients are looked at. */
  probeFailedMs: 1 * SECOND,
  /** Until a probe is repeated, since a target may change. */
  probeAgainMs: 6 * 3600 * SECOND,
} as const;
