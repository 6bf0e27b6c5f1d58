/**
 * Every fixed limit of the service, in one file. Not the settings: those are environment variables (`src/config.ts`)
 * or connectivity settings (`domain/settings`). Implements `configuration.md`, "Fixed limits", and the bounds that
 * `rest.md`, `domain.md` and `agent-protocol.md` state.
 */
const KiB = 1024;
const MiB = 1024 * KiB;
const SECOND = 1000;
const MINUTE = 60 * SECOND;

export const limits = {
  rest: {
    bodyBytes: 256 * KiB,
    pageSizeDefault: 50,
    pageSizeMax: 500,
    nameChars: 128,
    descriptionChars: 1024,
    stringChars: 1024,
    listEntries: 64,
    labels: 32,
    settingsNodes: 1024,
    idempotencyKeyChars: 128,
    idempotencyWindowMs: 24 * 60 * MINUTE,
    /** How long a command waits for this instance's read models, and a GET for `x-min-position`. */
    projectionWaitMs: 2 * SECOND,
    deployWaitDefaultMs: 10 * SECOND,
    deployWaitMaxMs: 30 * SECOND,
    requestTimeoutMs: 60 * SECOND,
    requestIdChars: 128,
  },
  events: {
    eventBytes: 256 * KiB,
    appendEvents: 100,
    appendBytes: 512 * KiB,
    /** Commands that may wait for the gateway of one stream; more are answered 503. */
    gatewayQueue: 10_000,
    /** Decide again after a conflict or an unknown outcome at most so often, then 503. */
    gatewayAttempts: 20,
    appendTimeoutMs: 10 * SECOND,
    agentFactsBatchMs: 250,
    agentFactsQueue: 200_000,
    signinsBatchMs: 250,
    signinsQueue: 10_000,
    agentsMaxAgeSeconds: 90 * 24 * 3600,
    signinsMaxAgeSeconds: 400 * 24 * 3600,
    foldCheckpointEvery: 20_000,
    /** Upper bound of one command's events; a batch of settings overrides stays far below. */
    commandEvents: 10_000,
  },
  fleet: {
    hops: 8,
    maxStreamsDefault: 100,
    maxStreamsMax: 65_535,
    snapshotBytes: 8 * MiB,
    generationMax: Number.MAX_SAFE_INTEGER,
    versionAheadMax: 2 ** 32,
    generationRaiseEveryMs: MINUTE,
    addressReportEveryMs: MINUTE,
    healthCheckIntervalMs: { min: 100, max: 3_600_000, default: 10_000 },
    pinOverlapMs: 10 * MINUTE,
  },
  agent: {
    protocolVersion: 1,
    handshakeBytes: { min: 48, max: 1024 },
    clockSkewMs: 120 * SECOND,
    nonceBytes: 16,
    ciphertextBytes: 65_535,
    fragmentMinBytes: 16 * KiB,
    joinedInBytes: 4 * MiB,
    joinedOutBytes: 16 * MiB,
    unfinishedBytesTotal: 256 * MiB,
    messageCompleteMs: 30 * SECOND,
    helloWithinMs: 10 * SECOND,
    pendingSessionMs: 10 * SECOND,
    pendingPerNode: 2,
    admissionDelayMs: 2 * SECOND,
    nodeOffersPerSecond: 1,
    nodeOffersBurst: 10,
    replayEntries: 1_000_000,
    addressBudgets: 100_000,
    nodeBudgets: 100_000,
    closeGraceMs: 2 * SECOND,
    sessionsEndedWaitMs: 2 * SECOND,
    grpcMessageBytes: 66 * KiB,
    streamsPerConnection: 4,
    sniffMs: 5 * SECOND,
    listenBacklog: 4096,
    runtimeListeners: 4096,
    runtimeRoutes: 16_384,
    linkMetrics: 16_384,
    detectedAddresses: 64,
    applyErrors: 1000,
    stringBytes: 1024,
    commandsPerHeartbeat: 16,
    commandExpiryMs: 10 * MINUTE,
    sessionAgeFactor: 1.15,
    duplicateWindowMs: 5 * MINUTE,
    duplicateShownMs: 60 * MINUTE,
  },
  delivery: {
    /** Nodes compiled and offered before the event loop gets a turn. */
    sliceNodes: 32,
    /** Encoded snapshots held in memory, sealed; the rest is compiled again on demand. */
    cacheBytes: 256 * MiB,
  },
  telemetry: {
    batchMs: 250,
    batchDocuments: 1000,
    instanceLeaseMs: 10 * SECOND,
    instanceLeaseRenewMs: 3 * SECOND,
  },
  projections: {
    batchEvents: 1000,
    queueEvents: 20_000,
    retryMinMs: 100,
    retryMaxMs: 10 * SECOND,
    parkedEntities: 10_000,
    tombstonePurgeEveryMs: 10 * MINUTE,
  },
  logins: {
    failuresPerAddressAndName: 5,
    failuresPerAddress: 20,
    windowMs: 5 * MINUTE,
    entries: 100_000,
    hashesInFlight: 2,
    hashQueue: 64,
    hashWaitMs: 5 * SECOND,
    /** Sign-ins that wait because those in flight could use the budget up; more are refused. */
    waiting: 256,
    waitMs: 5 * SECOND,
    /** Failures of one name, from all addresses, after which its sign-ins are slowed, and by how much at most. */
    slowNameAfter: 5,
    slowNameStepMs: 100,
    slowNameMaxMs: 2 * SECOND,
  },
  security: {
    /** Unwrapped data keys held in memory. */
    dataKeys: 65_536,
    /** Verified tokens held in memory. */
    tokens: 10_000,
    tokenChars: 4096,
  },
  shutdownMs: 10 * SECOND,
} as const;
