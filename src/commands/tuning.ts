/** The numbers of the command side that no contract states. */
export const tuning = {
  /** Commands that may wait for one gateway; more get a 503. */
  gatewayQueue: 10_000,
  /**
   * How often a command is decided again after a conflict, or appended again after an unknown outcome, before its 503.
   * Many, because an instance beside several busy ones loses most tries; the callers' timeout ends them too.
   */
  gatewayAttempts: 100,
  /** Waits between conflicts while the log shows nothing new. */
  unchangedRetry: { firstMs: 20, maxMs: 500 },
  /** How often a revert starts over because its resource has changed meanwhile. */
  revertAttempts: 5,
  /** How often a join starts over because its request is carried out elsewhere at the same time. */
  joinAttempts: 3,
  /** How often a secret is made again because the identity was rotated meanwhile. */
  staleAttempts: 3,
  /** Cached entries about several resources. */
  entriesRemembered: 8,
  /** Histories read at a time. */
  historiesPerTurn: 10,
  /**
   * How often a document is compared with a fleet that changes meanwhile: finally while commands wait, for `fileAloneMs`,
   * and then without a pause.
   */
  fileAttempts: 4,
  fileAloneMs: 5_000,
  /** How long keys of a document are made at a time. */
  fileTurnMs: 10,
  /** Resources of a set that one command releases. */
  releasedAtOnce: 300,
  /** The range after the first command of an apply or release in which the other ones are searched for. */
  severalWithinMs: 10 * 60_000,
  severalWithinEvents: 50_000,
  /** A caller gets an answer within this time, at worst a 503. Its append may take longer. */
  commandAnswerMs: 8_000,
  /** How long an append with an unknown outcome is searched and repeated. */
  outcomeWaitMs: 30_000,
  outcomeRetry: { firstMs: 20, maxMs: 2_000 },
  /** Short, because a waiting deploy learns of an apply through these facts. The contract allows up to 250. */
  agentFactsBatchMs: 25,
  agentFactsQueue: 200_000,
  agentFactsQueueBytes: 256 * 1024 * 1024,
  /**
   * The age at which standing facts are written again, by the instance with the node's session and by the one for all other
   * nodes. The contract allows up to 60 days.
   */
  standingFactsHeldDays: 45,
  standingFactsDays: 50,
  /** How soon after a start all nodes are checked, and how often from then on. */
  standingFactsFirstMs: 60_000,
  standingFactsEveryMs: 30 * 60_000,
  /** The pause between two appends, the longest wait for the fold, and the tries. */
  standingFactsPauseMs: 100,
  standingFactsWaitMs: 10_000,
  standingFactsTries: 5,
  /** How far the clocks of nodes and authorities may differ: certificates begin that much earlier. */
  certificateClockSkewMs: 5 * 60_000,
  /** How often the ends of overlaps of certificate keys are checked. */
  overlapsEveryMs: 5_000,
  signinsBatchMs: 250,
  signinsQueue: 10_000,
  signinsQueueBytes: 16 * 1024 * 1024,
  /** Larger facts are refused. No report within the limits is that large. */
  factBytes: 256 * 1024,
  /** How often the log may refuse a fact before the fact is dropped. */
  factRefusals: 3,
  factRetry: { firstMs: 50, maxMs: 5_000 },
  /** Nodes whose budget is remembered; more than can be connected. */
  factBudgets: 100_000,
  /** The maximum size of the facts held back, in bytes, for all nodes together. */
  heldFactsBytes: 64 * 1024 * 1024,
  /** How often held-back facts are retried. */
  heldFactsEveryMs: 250,
} as const;
