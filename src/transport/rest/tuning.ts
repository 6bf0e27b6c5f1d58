/** The numbers of the REST transport that no contract states. The contract's own numbers are in `src/kernel/limits.ts`. */
export const tuning = {
  /** Drifted resources whose entries are looked up, so many at a time, and how many entries of each. */
  driftedLookedUp: 500,
  driftedAtOnce: 8,
  driftEntries: 50,
  /** The time that a client has to send something. */
  timeouts: {
    /** A TLS handshake, and the headers of a request. */
    headersMs: 15_000,
    /** A request with its body. */
    requestMs: 60_000,
    /** How often both are checked: a request may overrun its limit by this much. Node's default is half a minute. */
    checkEveryMs: 1_000,
  },
  /** Open sockets, in all and of one client address; trusted proxies have no bound of their own. */
  sockets: { inAll: 10_000, perAddress: 1_000 },
  /** A request that waits its turn counts as this many waiting bytes, which are added up this often. */
  waitingRequestBytes: 4 * 1024,
  weighAnswersEveryMs: 250,
  /** The number of addresses with a budget of their own. */
  budgetAddresses: 10_000,
  /** Deploys that may wait for their nodes at a time. */
  waitingDeploys: { inAll: 128, perUser: 16 },
  /** Other work has its turn after this long: while a long body is read, and a long document. */
  turnMs: 10,
  /** A body is read in slices of this size where it may be long, for the one string in it that is longer. */
  sliceBytes: 64 * 1024,
  /** How long a document waits for the one before it. */
  documentWaitMs: 60_000,
  waitingRetrySeconds: 5,
  /** In a body, and in an entry of a document: objects and lists inside each other, values in all, and entries of one of them. */
  bodies: { depth: 64, values: 32_768, entries: 2_048 },
  /**
   * Documents: up to which length a JSON and a YAML text is read where it is asked for, and what the thread that reads longer
   * ones, which it gets in slices, may take, with its heap beside the text; how much has been parsed when the entries of a section are read and let go,
   * how much one entry may have, and how many values the whole.
   */
  documentTexts: {
    jsonChars: 32 * 1024,
    yamlChars: 4 * 1024,
    sliceChars: 512 * 1024,
    withinMs: 60_000,
    memoryMib: 400,
    endMs: 5_000,
    pieceTokens: 20_000,
    entryTokens: 500_000,
    values: 2_000_000,
  },
  /** How long open requests may take once the service stops. */
  closeWithinMs: 5_000,
  /** How much of a too large body is read and dropped, so that its sender sees the 413. */
  drainBytes: 16 * 1024 * 1024,
  /** An answer about all nodes yields to other work after this many. */
  nodesPerSlice: 25,
  /** A filter of chains yields to other work after this many. */
  chainsPerTurn: 250,
  /** The least length of the chunks in which an answer about all nodes is sent. */
  chunkChars: 64 * 1024,
  /** How long a refresh waits for its push, how often it polls, and when an agent that reads nothing counts as stalled. */
  pushWaitMs: 2_000,
  pushPollMs: 20,
  takenWithinMs: 500,
  /**
   * Streams of events: how long news is gathered, items of a read behind the head and their bytes, how often heartbeats and slow streams are
   * looked for, after how long a quiet stream gets a heartbeat, and how often tokens are asked for.
   */
  events: {
    gatherMs: 5,
    itemsOfRead: 200,
    bytesOfRead: 128 * 1024,
    lookEveryMs: 1_000,
    heartbeatMs: 13_000,
    tokensEveryMs: 1_000,
  },
  /** Sign-ins from one address, successful or not; far above the budget of failures. */
  signIns: { perSecond: 10, burst: 600 },
} as const;

export type Timeouts = { readonly [name in keyof typeof tuning.timeouts]: number };
