/** The numbers of the REST transport that no contract states. The contract's own numbers are in `src/kernel/limits.ts`. */
export const tuning = {
  /** Drifted resources whose audit entries are looked up, how many at a time, and how many entries of each. */
  driftedLookedUp: 500,
  driftedAtOnce: 8,
  driftEntries: 50,
  /** How long a client may take to send something. */
  timeouts: {
    /** A TLS handshake, and the headers of a request. */
    headersMs: 15_000,
    /** A request with its body. */
    requestMs: 60_000,
    /** How often both are checked: a request may overrun its limit by this much. Node's default is half a minute. */
    checkEveryMs: 1_000,
  },
  /** Open sockets, in total and for one client address; trusted proxies have no bound of their own. */
  sockets: { inAll: 10_000, perAddress: 1_000 },
  /** A queued request counts as this many unread bytes, which are added up this often. */
  waitingRequestBytes: 4 * 1024,
  weighAnswersEveryMs: 250,
  /** Addresses with a budget of their own. */
  budgetAddresses: 10_000,
  /** Deploys that may wait for their nodes at a time. */
  waitingDeploys: { inAll: 128, perUser: 16 },
  /** Reading a long body or document yields to other work after this long. */
  turnMs: 10,
  /** Bodies that may be long are searched for their one long string in slices of this size. */
  sliceBytes: 64 * 1024,
  /** How long a document waits for the one before it. */
  documentWaitMs: 60_000,
  waitingRetrySeconds: 5,
  /** Bounds of a body and of a document's entry: nesting, values in total, and entries of one object or list. */
  bodies: { depth: 64, values: 32_768, entries: 2_048 },
  /**
   * Documents. Texts up to `jsonChars` and `yamlChars` are read on the main thread; a worker thread reads longer ones, which it
   * gets in slices, within a time and a heap. Sections are parsed in pieces; entries and the whole document are bounded.
   */
  documentTexts: {
    jsonChars: 32 * 1024,
    yamlChars: 4 * 1024,
    sliceChars: 512 * 1024,
    withinMs: 60_000,
    memoryMib: 400,
    pieceTokens: 20_000,
    entryTokens: 500_000,
    values: 2_000_000,
  },
  /** How long open requests may take once the service stops. */
  closeWithinMs: 5_000,
  /** How much of a body that is too large is drained, so that its sender sees the 413. */
  drainBytes: 16 * 1024 * 1024,
  /** An answer about all nodes yields to other work after this many. */
  nodesPerSlice: 25,
  /** A walk over nodes or chains yields to other work after this many. */
  nodesPerTurn: 1_000,
  chainsPerTurn: 250,
  /** Minimum length of the chunks of a streamed answer. */
  chunkChars: 64 * 1024,
  /** How long a refresh waits for its push, how often it polls, and after how long an agent counts as not reading. */
  pushWaitMs: 2_000,
  pushPollMs: 20,
  takenWithinMs: 500,
  /**
   * Streams of events: how long news is gathered, the bounds of a read behind the head, how often streams are checked, after how
   * long a quiet stream gets a heartbeat, and how often tokens are checked.
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
