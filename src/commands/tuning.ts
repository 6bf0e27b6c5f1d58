/** The numbers of the command side that no contract states. */
export const tuning = {
  /** Commands that may wait for the gateway of one stream; more are answered 503. */
  gatewayQueue: 10_000,
  /** How often a command is decided again after a conflict or an unknown outcome, before it is answered 503. */
  gatewayAttempts: 20,
  /** A caller is answered within this time, with a 503 at the latest; what was begun may take longer to settle. */
  commandAnswerMs: 8_000,
  /** How long an append whose outcome is unknown is looked for and repeated, before its callers get a 503. */
  outcomeWaitMs: 30_000,
  outcomeRetry: { firstMs: 20, maxMs: 2_000 },
  /** Short, because a waiting deploy hears of an apply through these facts; the contract allows up to 250. */
  agentFactsBatchMs: 25,
  agentFactsQueue: 200_000,
  signinsBatchMs: 250,
  signinsQueue: 10_000,
  factRetry: { firstMs: 50, maxMs: 5_000 },
} as const;
