/** The numbers of delivery that no contract states. */
export const tuning = {
  /** How many nodes have a remembered checksum, or remembered rejects. */
  rememberedNodes: 65_536,
  /** How long a ConfigRequest waits for the log and the read store before the session is drained. */
  requestWaitMs: 5_000,
} as const;
