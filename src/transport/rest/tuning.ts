/** The numbers of the REST transport that no contract states. Those that it states are in `src/kernel/limits.ts`. */
export const tuning = {
  /** How long what a client sends may take. */
  patience: {
    /** A TLS handshake, and the headers of a request. */
    headersMs: 15_000,
    /** A request with its body. */
    requestMs: 60_000,
    /** How often both are looked at: a request is cut so much late. Node's default is half a minute. */
    checkEveryMs: 1_000,
  },
  /** Open sockets, in all and of one client address; trusted proxies have no bound of their own. */
  sockets: { inAll: 10_000, perAddress: 1_000 },
  /** What a request that waits its turn counts for among the bytes that wait, and how often all are added up. */
  waitingRequestBytes: 4 * 1024,
  weighAnswersEveryMs: 250,
  /** Addresses whose budgets are kept. */
  budgetAddresses: 10_000,
  /** Deploys that may wait for their nodes at a time; each looks at them every `waitPollMs`. */
  waitingDeploys: { inAll: 128, perUser: 16 },
  waitingRetrySeconds: 5,
  /** How long open requests may take once the service stops. */
  closeWithinMs: 5_000,
  /** How much of a too large body is read and dropped, so that its sender sees the 413. */
  drainBytes: 16 * 1024 * 1024,
  /** Nodes that an answer about all of them looks at before other work of the process has its turn. */
  nodesPerSlice: 25,
  /** Chains that a filter looks at before other work has its turn. */
  chainsPerTurn: 500,
  /** Such an answer is sent in chunks of at least so many characters. */
  chunkChars: 64 * 1024,
  /** How long a refresh waits for its push, to answer `pushed`, how often it looks, and for how long its agent may take nothing. */
  pushWaitMs: 2_000,
  pushPollMs: 20,
  takenWithinMs: 500,
  /** How often a waiting deploy reads presence, beside being called back. */
  waitPollMs: 100,
  /** How often a snapshot is looked for while the fold and the read models do not agree about its node. */
  foldPollMs: 20,
  /**
   * What agents reported is read again for the dashboard after a second, in a large fleet after so many times as long as
   * reading takes, but not later than `maxMs`.
   */
  dashboard: { reuseMs: 1_000, timesTheCost: 10, maxMs: 15_000, nodesPerTally: 250, auditEntries: 10 },
  /** Sign-ins from one address, successful or not; far above the budget of failures. */
  signIns: { perSecond: 10, burst: 600 },
} as const;

export type Patience = { readonly [name in keyof typeof tuning.patience]: number };
