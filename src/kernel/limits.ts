/**
 * Every fixed limit of the service, in one file. Not the settings: those are environment variables (`src/config.ts`)
 * or connectivity settings (`domain/settings`). Implements `docs/contract/configuration.md`, "Fixed limits", and the bounds that
 * `docs/contract/rest.md`, `docs/contract/domain.md` and `docs/contract/agent-protocol.md` state.
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
    /** How long requests may still be at work, or on their way in, when the service stops. */
    closeWithinMs: 5 * SECOND,
    requestIdChars: 128,
    /** What is read and dropped of a body that is too large, so that its sender gets to read the 413. */
    drainBytes: 16 * MiB,
    /** How long a refresh waits to see its push leave, for `pushed`. */
    pushWaitMs: 2 * SECOND,
    /** How often a waiting deploy or refresh looks at presence, beside being called back. */
    waitPollMs: 100,
    headersTimeoutMs: 15 * SECOND,
    connections: 10_000,
    /** Sign-ins of one address, whatever their outcome; the budget of failures is far below. */
    loginsPerMinute: 600,
    loginAddresses: 10_000,
    offlineAfterSecsMax: 7 * 24 * 3600,
  },
  events: {
    eventBytes: 256 * KiB,
    appendEvents: 100,
    appendBytes: 512 * KiB,
    /** Commands that may wait for the gateway of one stream; more are answered 503. */
    gatewayQueue: 10_000,
    /** Decide again after a conflict or an unknown outcome at most so often, then 503. */
    gatewayAttempts: 20,
    /** A caller hears within this time, with a 503 at the latest; what was begun for it may take longer to be settled. */
    commandAnswerMs: 8 * SECOND,
    /** A data key that the read store has not taken, or given, after so long is unavailable. */
    dataKeyMs: 8 * SECOND,
    /** An append whose outcome is unknown is looked for and repeated so long, then its callers get a 503. */
    outcomeWaitMs: 30 * SECOND,
    appendTimeoutMs: 10 * SECOND,
    /** Short, so that a deploy that waits is told soon; the contract allows up to 250. */
    agentFactsBatchMs: 25,
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
    /** Commands of one node that wait for its agent. */
    queuedCommands: 64,
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
    /** HTTP/2 pings of the service to agents, and how long their answer may take. */
    keepaliveMs: MINUTE,
    keepaliveTimeoutMs: 20 * SECOND,
    /** A connection without any stream is closed after this time. */
    connectionIdleMs: MINUTE,
    connectionMemoryMiB: 10,
    /** Timeouts of sessions and pending sessions are looked at so often. */
    sweepMs: 200,
    /** Small answers that wait for a peer to read; then nothing more is read from it. */
    outboxPayloads: 64,
    /** Requests of one session that wait for delivery or a command claim; then nothing more is read from it. */
    laneRequests: 4,
    /** An answer of delivery or of the command store that takes longer ends the session with DRAINING. */
    laneTimeoutMs: 30 * SECOND,
    /** An apply report holds up what comes after it no longer than this; its fact goes on waiting for the event store. */
    reportWaitMs: 2 * SECOND,
    /** How long a revoked session may take to read its SessionClose before the socket is cut. */
    revokedFlushMs: 100,
    /** Between the status of a revoked session and the cut, so that the network takes the status. */
    revokedLingerMs: 20,
    /** Base of the jittered `retry_after_ms` when agents are sent away. */
    drainRetryMs: 2 * SECOND,
    overloadRetryMs: 5 * SECOND,
    /** OpenSession calls of one address that wait for its budget. */
    waitingPerAddress: 16_384,
    /** Handshake CPU time that may be used at once after a quiet time. */
    handshakeBurstMs: 250,
    /** Handshakes begun before the event loop gets a turn. */
    handshakesAtOnce: 32,
    /** A hello this long after SessionClose REKEY of its predecessor still counts as its rekey. */
    rekeyWindowMs: 20 * SECOND,
    metricsListeners: 4096,
    metricsUpstreams: 16_384,
    sniffMs: 5 * SECOND,
    listenBacklog: 4096,
    runtimeListeners: 4096,
    runtimeRoutes: 16_384,
    linkMetrics: 16_384,
    detectedAddresses: 64,
    applyErrors: 1000,
    stringBytes: 1024,
    checksumBytes: 32,
    commandsPerHeartbeat: 16,
    commandExpiryMs: 10 * MINUTE,
    sessionAgeFactor: 1.15,
    duplicateWindowMs: 5 * MINUTE,
    duplicateShownMs: 60 * MINUTE,
  },
  delivery: {
    /** Nodes compiled and offered before the event loop gets a turn. */
    sliceNodes: 32,
    /** Bytes encoded before the event loop gets a turn. */
    sliceBytes: 1 * MiB,
    /** Encoded snapshots held in memory, sealed; the rest is compiled again on demand. */
    cacheBytes: 256 * MiB,
    /** Nodes whose checksum, or whose verdicts on rejected snapshots, are remembered. */
    rememberedNodes: 65_536,
    /** Snapshots that nodes applied, on their way to the read store. */
    keptBatchMs: 250,
    keptBatchEntries: 256,
    keptBatchBytes: 4 * MiB,
    keptWaitingBytes: 64 * MiB,
    /** After a dropped subscription: how long the instance still counts as up to date. */
    dropGraceMs: 5 * SECOND,
    /** How long a ConfigRequest waits for the log and the read store before the session is drained. */
    requestWaitMs: 5 * SECOND,
    /** Base of the jittered `retry_after_ms` of a drained session. */
    drainRetryMs: 2 * SECOND,
    /** One conflict of versions is a fact at most so often per node. */
    versionConflictEveryMs: MINUTE,
    replayRetryMs: 10 * SECOND,
  },
  telemetry: {
    batchMs: 250,
    batchDocuments: 1000,
    /** Nodes whose newest values may wait while the read store is away. */
    waitingNodes: 65_536,
    waitingBytes: 256 * MiB,
    batchBytes: 16 * MiB,
    releaseTimeoutMs: 2 * SECOND,
    /** A heartbeat's answer waits no longer for the claim of commands; what is claimed later goes with the next. */
    claimWaitMs: 500,
    /** Presence that ended so long ago is forgotten; `last_seen_at` stays. */
    presencePurgeAfterMs: 24 * 60 * MINUTE,
    presencePurgeEveryMs: 10 * MINUTE,
    instanceLeaseMs: 10 * SECOND,
    instanceLeaseRenewMs: 3 * SECOND,
    pingEveryMs: SECOND,
    /** How often the other instances are asked whether they have cut a revoked node's sessions. */
    cutsPollMs: 25,
    pingTimeoutMs: 5 * SECOND,
  },
  projections: {
    batchEvents: 1000,
    queueEvents: 20_000,
    /** So many events folded and not written yet, beside those being written, and catching up waits for the write. */
    backlogEvents: 1_000,
    /** How long they wait for more when nothing comes. */
    backlogMs: 100,
    /** Documents of one read model that are kept in memory while the log is caught up with. */
    keptDocuments: 20_000,
    retryMinMs: 100,
    retryMaxMs: 2 * SECOND,
    parkedEntities: 10_000,
    tombstonePurgeEveryMs: 10 * MINUTE,
    /** A checkpoint may be late by so much: what lies behind it is folded again, which changes nothing. */
    checkpointEveryMs: 250,
    closeWithinMs: 2 * SECOND,
    /** Commands and queries that wait until the read models have followed; more are answered at once as lagging. */
    waiters: 20_000,
    /** How often, while somebody waits for a position that no read model uses, the log is asked whether it is passed. */
    probeEveryMs: 50,
    probeTimeoutMs: 2 * SECOND,
    /** Former names of one resource that audit entries can still be shown with. */
    namesPerResource: 1000,
    deploymentsListed: 10_000,
    /** Documents that one step of a scan loads. */
    scanDocuments: 1000,
    /** Reads of the log that one page of the audit makes at the same time, and gaps that one read spans, in events. */
    auditReads: 8,
    auditReadGap: 16,
    errorChars: 500,
    /** How often an instance looks whether a rebuild has put the read models elsewhere, and says where it reads them. */
    layoutPollMs: 2 * SECOND,
    layoutLeaseMs: 10 * SECOND,
    /** How long the replaced read models go on being followed, for those who wait on them. */
    layoutLingerMs: 3 * SECOND,
    /** One rebuild at a time: how long its lease lives when it is killed. */
    rebuildLeaseMs: 10 * SECOND,
    /** How long a rebuild waits for all instances to read the new place before it leaves the old one standing. */
    rebuildReadersMs: 30 * SECOND,
    /** Documents that a comparison loads at once, and differences that it shows. */
    compareDocuments: 1000,
    compareShown: 100,
    compareRounds: 5,
  },
  storage: {
    /** A store that is not there at the start is tried again so often, and the log says so again after so long. */
    openRetryMinMs: 100,
    openRetryMaxMs: 2 * SECOND,
    openProgressMs: 30 * SECOND,
    /** Upper bound of one append, the same for every adapter: EventStoreDB's default. */
    appendBytesMax: MiB,
    /** Operations that may wait for their group commit; more are refused as unavailable. */
    writeQueue: 20_000,
    /** One group commit takes at most so many operations and about so many bytes. */
    groupOperations: 512,
    groupBytes: 4 * MiB,
    /** The operations of one group hold the event loop no longer than about this. */
    groupMs: 8,
    /** A group of many operations of one caller, as when read models are filled, takes about so many changes. */
    bulkChanges: 16_384,
    /** One item of a subscription. */
    batchEvents: 1000,
    batchBytes: 8 * MiB,
    /** Entries read at once before the event loop gets a turn. */
    sliceEntries: 1000,
    /** Appends with expected revision `any` whose repeat is recognised. */
    anyAppends: 10_000,
    trimEveryMs: MINUTE,
    /** Expired appends that one turn of the trimmer removes per stream. */
    trimAppends: 1000,
    foldChunkBytes: MiB,
    documentIdBytes: 256,
    /** Longer strings are cut in an index key and compared in the document. */
    indexStringBytes: 200,
    indexFields: 5,
    /** Index entries of one document in one index: only lists make more than one. */
    indexEntries: 1024,
    leaseNameBytes: 512,
    /** MongoDB takes documents of 16 MiB, all told. */
    documentBytes: 15 * MiB,
    /** The read store on MongoDB. */
    mongo: {
      /** How long a call waits for a primary: an election takes longer, and callers try again. */
      selectionMs: 3 * SECOND,
      connectMs: 3 * SECOND,
      /** A connection on which nothing was heard for so long while an answer is due is closed. */
      answerMs: 20 * SECOND,
      /** Whoever reads waits no longer for it. */
      readMs: 8 * SECOND,
      /** How long a write waits for a majority to have it. */
      majorityMs: 10 * SECOND,
      pingMs: 3 * SECOND,
      heartbeatMs: 2 * SECOND,
      /** Heartbeats without a word of the driver about a server before its client is opened anew. */
      silentHeartbeats: 6,
      connections: 32,
      /** Documents that one command reads or writes. */
      batchDocuments: 1000,
      /** A change that others keep overtaking is given up as unavailable after so many tries. */
      attempts: 100,
      retryMinMs: 1,
      retryMaxMs: 50,
    },
  },
  /** Log archives (`src/storage/log-archive`). */
  archive: {
    /** A block of lines, and its checksum, is closed once it has so many lines or bytes: what is held in memory at once. */
    blockLines: 1000,
    blockBytes: MiB,
    /** The largest line that is read: a kept snapshot of the largest size, sealed, in base64. */
    lineBytes: 32 * MiB,
    /** Problems that are kept to be shown; all are counted. */
    problems: 100,
    documentsAtOnce: 200,
    /** A store that is away for so long ends an export, an import or a check. */
    giveUpMs: 60 * SECOND,
  },
  /** The EventStoreDB adapter. Every wait of its own is below the 10 seconds that the client and its pings take. */
  eventStoreDb: {
    /** One try of an append; the whole call answers within `events.appendTimeoutMs`. */
    appendTryMs: 5 * SECOND,
    /** Tries of an append that was certainly not written go on for so long. */
    appendRetryMs: 3 * SECOND,
    retryMinMs: 20,
    retryMaxMs: 500,
    /**
     * Until when the server may still begin to write an append, by its own clock. Above 10 s, so that clocks may differ;
     * below `events.outcomeWaitMs`, so that nothing comes after the search for it was given up.
     */
    appendDeadlineMs: 25 * SECOND,
    appendsWaiting: 20_000,
    /** One page of a read, from asking to its end. */
    readPageMs: 8 * SECOND,
    readPageEvents: 500,
    /** Tries of a page that failed at once go on for so long. */
    readRetryMs: 3 * SECOND,
    /** Open reads and open subscriptions of this process. The server's connection carries 100, and hangs beyond. */
    reads: 40,
    subscriptions: 40,
    /** Appends in flight of this process: one stream each on the classic path; on the other what its buffer takes. */
    appendsAtOnce: 16,
    /** How long a read or a subscription waits for one of those places. */
    placeWaitMs: 5 * SECOND,
    confirmMs: 8 * SECOND,
    /** Events that a subscription holds before it stops to take more, and when it goes on. */
    queueHigh: 2000,
    queueLow: 500,
    /** Likewise in bytes of JSON; it goes on below half of it. */
    queueBytesHigh: 16 * MiB,
    /** Drops as too slow, one after the other without an event in between, that a subscription takes. */
    slowTries: 5,
    /** How long a subscription that catches up waits for more events before it hands out those that came. */
    catchUpGatherMs: 5,
    /** Events scanned per page and checkpoint of a filtered subscription. */
    searchWindow: 5000,
    /** Chunk of a fold checkpoint, and how many of them one page of a read takes. */
    foldChunkBytes: 512 * KiB,
    foldPageEvents: 8,
    /** Chunks that a search for a whole checkpoint looks through. */
    foldSearchEvents: 512,
    disposeMs: 2 * SECOND,
    /** Pings of the connection, and how long their answer may take: what ends a subscription whose server hangs. */
    keepaliveMs: 10 * SECOND,
    /** How long one node of a cluster is asked who the leader is. */
    gossipSeconds: 2,
    startProbeMs: SECOND,
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
  /** The reference agent's control side (`src/agent/session-loop.ts`). */
  agentControl: {
    openTimeoutMs: 10 * SECOND,
    keepaliveMs: 30 * SECOND,
    keepaliveTimeoutMs: 10 * SECOND,
    /** The first wait is half to the whole of this: 0.5 s at the least. */
    backoffMinMs: 1 * SECOND,
    backoffMaxMs: 30 * SECOND,
    supersededWaitMs: 60 * SECOND,
    /** The longest `retry_after_ms` that is heeded. */
    retryAfterMaxMs: 60 * MINUTE,
    rekeyDefaultSeconds: 6 * 3600,
    rekeyJitter: 0.1,
    missedHeartbeats: 3,
    firstHeartbeatWithinMs: 2 * SECOND,
    sendQueuePayloads: 256,
    sendQueueBytes: 16 * MiB,
    closeWaitMs: 2 * SECOND,
  },
  /** The reference agent's data side (`src/agent/tcp-relay.ts`, `udp-relay.ts`). */
  relay: {
    connectTimeoutMs: 10 * SECOND,
    /** Endpoints of a cluster that one connection tries. */
    connectAttempts: 3,
    tcpSessionsPerListener: 16_384,
    /** Silence after one side has finished, before the connection is given up. */
    tcpHalfClosedIdleMs: 10 * MINUTE,
    tcpKeepaliveMs: 60 * SECOND,
    /** How long connections of a listener that is gone may go on. */
    drainMs: 10 * SECOND,
    udpSessionsPerListener: 8192,
    udpIdleMs: 60 * SECOND,
    /** Datagrams held while the session's socket is being connected. */
    udpPendingDatagrams: 16,
    udpSendQueueBytes: 1 * MiB,
    rules: 16_384,
    links: 4096,
    latencySamples: 512,
  },
  shutdownMs: 10 * SECOND,
  startProgressMs: 5 * SECOND,
  startPollMs: 20,
} as const;
