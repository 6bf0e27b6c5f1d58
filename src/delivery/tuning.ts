/** The numbers of delivery that no contract states. */
export const tuning = {
  /** Nodes whose checksum, or whose apply reports on rejected snapshots, are remembered. */
  rememberedNodes: 65_536,
  /** How long a ConfigRequest waits for the log and the read store before the session is drained. */
  requestWaitMs: 5_000,
} as const;
