/** The numbers of the command side that no contract states. */
export const tuning = {
  /** Commands that may wait for the gateway of one stream; further ones get a 503. */
  gatewayQueue: 10_000,
  /**
   * How often a command is decided again after a conflict, or appended again after an unknown outcome, before its 503.
   */
  gatewayAttempts: 20,
  /** A caller gets an answer within this time, at worst a 503; its append may take longer. */
  commandAnswerMs: 8_000,
  /** How long an append with an unknown outcome is searched for and retried. */
  outcomeWaitMs: 30_000,
  outcomeRetry: { firstMs: 20, maxMs: 2_000 },
  /** Short, because a waiting deploy learns of an apply through these facts. The contract allows up to 250. */
  agentFactsBatchMs: 25,
  agentFactsQueue: 200_000,
  signinsBatchMs: 250,
  signinsQueue: 10_000,
  factRetry: { firstMs: 50, maxMs: 5_000 },
} as const;
