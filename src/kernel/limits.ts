/**
 * The limits that the contract states, each group with its section. Settings are environment variables
 * (`src/app/config/`) or connectivity settings (`src/domain/settings`). Numbers that the contract does not state are in
 * the `tuning.ts` of their folder, or in the file that uses them.
 */
const KiB = 1024;
const MiB = 1024 * KiB;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY_SECONDS = 24 * 3600;

export const limits = {
  rest: {
    // docs/contract/rest.md#envelope
    pageSizeDefault: 50,
    pageSizeMax: 500,
    nameChars: 128,
    // docs/contract/rollouts.md#guided-rotation
    nodesNamed: 20,
    candidateDays: { max: 30, default: 7 },
    descriptionChars: 1024,
    stringChars: 1024,
    pemChars: 64 * KiB,
    listEntries: 64,
    settingsNodes: 1024,
    tunnels: 1024,
    // docs/contract/rest.md#errors
    bodyBytes: 256 * KiB,
    // docs/contract/rest.md#consistency
    /** How long a command waits for this instance's read models, and a GET for `x-min-position`. */
    projectionWaitMs: 2 * SECOND,
    idempotencyKeyChars: 128,
    idempotencyWindowMs: 24 * HOUR,
    // docs/contract/rest.md#nodes
    labels: 32,
    labelKeyChars: 63,
    /** The newest commands shown with a node. */
    nodeCommands: 50,
    /** Nodes of one command about several. */
    bulkNodes: 500,
    /** Listeners that do not run, as shown with a node, a chain or a deployment. */
    failedListeners: 20,
    /** Resources named with one dashboard entry, and users shown with an upstream. */
    matterResources: 20,
    // docs/contract/agent-protocol.md#configuration
    /** Sentences about agents that cannot run what is asked of them, in one answer. */
    warnings: 20,
    /** The length to which sentences cut an agent's version. */
    agentVersionChars: 64,
    usersShown: 20,
    // docs/contract/rest.md#topology
    /** Nodes of an answer that is neither grouped nor limited to one group. */
    topologyNodes: 1_000,
    /** Keys of labels that are listed. */
    labelKeysShown: 100,
    // docs/contract/rest.md#audit
    /** Changes shown with an audit entry. */
    changesShown: 20,
    // docs/contract/rest.md#credentials
    shortIdDigits: 16,
    selfSignedDaysDefault: 365,
    // docs/contract/rest.md#dashboard
    expiringSoonMs: 30 * DAY_SECONDS * SECOND,
    // docs/contract/rest.md#l4-upstreams
    healthCheckIntervalMs: { min: 100, max: 3_600_000, default: 10_000 },
    // docs/contract/configuration.md#configuration
    /** Requests in flight on one connection; at the limit, the connection is not read. */
    requestsInFlight: 8,
    /** How long a connection may leave a waiting answer unread. */
    answerProgressMs: 30 * SECOND,
    /** For all connections together. */
    waitingAnswerBytes: 64 * MiB,
    /** Requests from one address without a token, except `/healthz`, `/readyz` and sign-ins. */
    withoutToken: { perSecond: 10, burst: 50 },
    metricsEveryMs: 1 * SECOND,
    // docs/contract/rest.md#l4-chains
    deployWaitDefaultMs: 10 * SECOND,
    deployWaitMaxMs: 30 * SECOND,
  },
  // docs/contract/rest.md#authentication-and-roles
  logins: {
    failuresPerAddressAndName: 5,
    failuresPerAddress: 20,
    windowMs: 5 * MINUTE,
    hashesInFlight: 2,
  },
  accounts: {
    // docs/contract/rest.md#authentication-and-roles
    passwordChars: { min: 12, max: 256 },
    usernameChars: { min: 2, max: 64 },
    /** How many signed-out tokens are remembered; tokens expire within hours anyway. */
    endedTokens: 100_000,
    // docs/contract/automation.md#api-tokens
    apiTokens: {
      /** Unexpired tokens of one user. */
      live: 64,
      ranges: 16,
      days: { min: 1, max: 366, default: 90 },
      expiredListedMs: 30 * 86_400_000,
      /** Unknown and malformed tokens from one address. */
      guesses: { perSecond: 20 / 60, burst: 20 },
    },
  },
  events: {
    // docs/contract/domain.md#commands-and-events
    /** Events of a group of commands; a single command may have more. */
    appendEvents: 100,
    appendBytes: 512 * KiB,
    commandBytes: 512 * KiB,
    foldCheckpointEvery: 20_000,
    // docs/decisions/read-side.md#the-event-feed, 220
    /** How many nodes are named with the command that touched them; above it, the command counts as touching all. */
    touchedNodes: 256,
    // docs/contract/domain.md#one-consistency-boundary-the-fleet
    agentsMaxAgeSeconds: 90 * DAY_SECONDS,
    signinsMaxAgeSeconds: 400 * DAY_SECONDS,
    webhooksMaxAgeSeconds: 90 * DAY_SECONDS,
    statusMaxAgeSeconds: 90 * DAY_SECONDS,
  },
  status: {
    // docs/contract/notices.md#status-changes-are-facts
    /** How long a change must stand before it is told. */
    standsMs: 3 * SECOND,
    /** How long an agent that has closed its session may take to come back before its node is reported offline. */
    closedMs: 15 * SECOND,
    perResource: { changes: 6, windowMs: 10 * MINUTE, gapMs: 10 * SECOND },
    perMinute: 20_000,
    leaseMs: 10 * SECOND,
    /** Facts expire; one that still counts is written again before it is 60 days old. */
    repeatAfterMs: 59 * DAY_SECONDS * SECOND,
    incidentsKeptMs: 90 * DAY_SECONDS * SECOND,
  },
  rollouts: {
    // docs/contract/rollouts.md#rollout-policies
    waves: 16,
    bakeSecs: { min: 0, max: DAY_SECONDS, default: 60 },
    applyTimeoutSecs: { min: 5, max: 3600, default: 120 },
    confirmSecs: { min: 60, max: 3600 },
    confirmManualSecs: { min: 30, max: DAY_SECONDS },
    // docs/decisions/rollouts.md
    /** Ended rollouts that are kept, and how many nodes they may have together. */
    endedKept: 500,
    endedNodesKept: 50_000,
  },
  feed: {
    // docs/contract/automation.md#event-feed
    /** Per instance. */
    streams: { perUser: 16, inAll: 1000 },
    pageSizeDefault: 100,
    /** The maximum number of events that a page, or a piece of a stream, looks at and holds. */
    pieceEvents: 10_000,
    pieceBytes: 4 * MiB,
    waitMsMax: 30 * SECOND,
    /** How many bytes may wait for a live stream, and for how long. */
    waitingBytes: 1 * MiB,
    waitingMs: 5 * SECOND,
    /** How long a stream may take to read its end. */
    endMs: 5 * SECOND,
  },
  webhooks: {
    // docs/contract/automation.md#webhooks
    inAll: 64,
    /** How long one delivery attempt may take, including the DNS lookup and the response. */
    tryMs: 10 * SECOND,
    answerBytes: 64 * KiB,
    /** Waits between attempts after a failure; then hourly. */
    retryMs: [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, HOUR],
    hourlyTries: 72,
    retryAfterMaxMs: HOUR,
    formerSecretMs: 24 * HOUR,
    // docs/contract/notices.md#webhooks-for-people
    groupSecs: { max: 3600, default: 15 },
    /** Items of one message. */
    windowItems: 10_000,
    mailAddresses: 16,
    /** How often the cursor of one webhook may be written to the log. */
    factEveryMs: 10 * SECOND,
    deliveries: 50,
  },
  backups: {
    // docs/contract/joining.md#backups
    everyHours: { min: 1, max: 168, default: 24 },
    keep: { min: 1, max: 365, default: 14 },
    /** A backup is late when it is older than this many intervals. */
    lateAfter: 2,
  },
  fleetFile: {
    // docs/contract/automation.md#the-fleet-as-a-file
    documentBytes: 16 * MiB,
    bodyBytes: 20 * MiB,
    resources: 50_000,
    /** Mistakes named in one answer, and steps on a page of an apply. */
    mistakes: 50,
    steps: 500,
    /** The size that any document may expand to, however short it is. */
    expansionBytes: 64 * KiB,
    nesting: 64,
    aliases: 1_000,
    /** In longer JSON documents, mistakes are located by path alone. */
    placedJsonBytes: MiB,
    /** Plans and applies that wait for the running one on an instance. */
    waiting: 4,
  },
  clocks: {
    // docs/contract/domain.md#commands-and-events
    apartMs: 30 * SECOND,
    compareEveryMs: MINUTE,
  },
  fleet: {
    // docs/contract/domain.md#l4-chain
    hops: 8,
    maxStreams: { max: 65_535, default: 100 },
    /** How long diallers trust the previous key of a certificate beside the new one. */
    pinOverlapMs: 10 * MINUTE,
    // docs/contract/domain.md#l3-network
    l3: {
      members: 256,
      networkIdMax: 2 ** 31 - 1,
      contextIdMax: 2 ** 31 - 1,
      mtu: { min: 1280, max: 9000, default: 1380 },
      interfaceNameChars: 15,
    },
    // docs/contract/domain.md#commands-and-events
    definitionBytes: 192 * KiB,
    // docs/contract/domain.md#scale-the-model-is-built-for
    snapshotBytes: 8 * MiB,
    // docs/contract/domain.md#generation
    generationMax: Number.MAX_SAFE_INTEGER,
    versionAheadMax: 2 ** 32,
    /** How often one node may raise its generation. */
    generationRaises: { everyMs: MINUTE, perHour: 6 },
    // docs/contract/agent-protocol.md#configuration
    /** When a rejected newest generation is offered again: this long after its first reject, then at this interval. */
    rejectRetry: {
      afterMs: [MINUTE, 5 * MINUTE, 30 * MINUTE],
      everyMs: 60 * MINUTE,
      /** Jitter of these times, up or down. */
      jitter: 0.2,
      /** Per instance. */
      nodesPerSecond: 50,
    },
    /** How often one node may change its public addresses. */
    addressReports: { everyMs: MINUTE, perHour: 6 },
    // docs/contract/joining.md#join-tokens
    joinTokens: {
      live: 100,
      uses: { max: 1000, default: 1 },
      hours: { max: 8760, default: 24 },
      nodesShown: 50,
      endedListedMs: 30 * DAY_SECONDS * SECOND,
      /** Each new token makes the fold forget up to this many ended ones. */
      forgottenAtOnce: 20,
      requestIdBytes: 16,
      /** Sessions that may be opened with one token. */
      opens: { perSecond: 50, burst: 50 },
    },
  },
  agent: {
    // docs/contract/agent-protocol.md#the-listener
    listenBacklog: 4096,
    sniffMs: 5 * SECOND,
    withoutSessionMs: 10 * SECOND,
    headerListBytes: 8 * KiB,
    // docs/contract/agent-protocol.md#opensession
    protocolVersion: 1,
    handshakeBytes: { min: 48, max: 1024 },
    nonceBytes: 16,
    clockSkewMs: 120 * SECOND,
    pendingSessionMs: 10 * SECOND,
    pendingPerNode: 2,
    admissionDelayMs: 2 * SECOND,
    nodeOffersPerSecond: 1,
    nodeOffersBurst: 10,
    /** How long a node and the address of its session count as a proven pair, with its own budget of failures. */
    provenPairMs: 24 * HOUR,
    /** The number of faulty calls after which their connection is closed. */
    faultyCallsPerConnection: 5,
    // docs/contract/agent-protocol.md#control
    ciphertextBytes: 65_535,
    fragmentMinBytes: 16 * KiB,
    joinedInBytes: 4 * MiB,
    joinedOutBytes: 16 * MiB,
    unfinishedBytesTotal: 256 * MiB,
    messageCompleteMs: 30 * SECOND,
    helloWithinMs: 10 * SECOND,
    closeGraceMs: 2 * SECOND,
    grpcMessageBytes: 66 * KiB,
    /** A session may be at most this many times as old as the granted rekey interval. */
    sessionAgeFactor: 1.15,
    duplicateWindowMs: 5 * MINUTE,
    duplicateShownMs: HOUR,
    // docs/contract/agent-protocol.md#heartbeats-commands-metrics
    commandsPerHeartbeat: 16,
    /** Commands that may wait for a node, and commands kept to be shown. */
    queuedCommands: 64,
    commandExpiryMs: 10 * MINUTE,
    /** A report, how often a node is asked for one, how soon it answers, and how long its newest one is kept. */
    diagnostics: {
      bytes: 64 * KiB,
      // docs/agent-protocol.md#limits
      items: 1000,
      logLines: 100,
      everyMs: MINUTE,
      answerMs: 30 * SECOND,
      keptMs: 7 * DAY_SECONDS * SECOND,
    },
    // docs/contract/agent-protocol.md#control
    recordedErrorBytes: 16 * KiB,
    /** Read budget of one node: heartbeats, metrics and config requests, the entries in them, bytes of frames. */
    reading: {
      payloads: { perSecond: 2, burst: 20 },
      entries: { perSecond: 4_000, burst: 40_000 },
      bytes: { perSecond: 512 * KiB, burst: 4 * MiB },
    },
    /** Bytes of facts that one node can add to the log. */
    factBytes: { perMinute: 64 * KiB, burst: 512 * KiB },
    // docs/contract/agent-protocol.md#several-instances
    sessionsEndedWaitMs: 2 * SECOND,
    // docs/contract/configuration.md#configuration
    streamsPerConnection: 4,
    runtimeListeners: 4096,
    runtimeRoutes: 16_384,
    applyErrors: 1000,
    // docs/contract/wire.md#configuration
    checksumBytes: 32,
    // docs/agent-protocol.md#limits
    linkMetrics: 16_384,
    metricsListeners: 4096,
    metricsUpstreams: 16_384,
    detectedAddresses: 64,
    features: 32,
    /** A longer feature is not kept. */
    featureChars: 64,
    stringBytes: 1024,
  },
  /** Limits of the reference agent (`src/agent/control/session-loop.ts`). */
  agentControl: {
    // docs/contract/agent-protocol.md#the-reference-agent
    /** The first wait is between half a second and a whole one. */
    reconnect: { firstMs: 1 * SECOND, maxMs: 30 * SECOND },
    // docs/contract/agent-protocol.md#control
    supersededWaitMs: 60 * SECOND,
    missedHeartbeats: 3,
    // docs/agent-protocol.md#how-a-session-ends
    revokedRetryMs: 5 * MINUTE,
    protocolErrorWaitMs: 30 * SECOND,
    // docs/contract/agent-protocol.md#rekey
    rekeyDefaultSeconds: 6 * 3600,
    rekeyJitter: 0.1,
    closeWaitMs: 2 * SECOND,
  },
} as const;
