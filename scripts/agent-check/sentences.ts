/**
 * The sentences of the documents that the kit can find an agent breaking, verbatim, and those that it cannot check,
 * with the reason. Pure. `test/agent-check` fails for a sentence that is not in its document under its heading.
 */

export interface Sentence {
  /** From the project's root. */
  readonly document: string;
  /** The heading above it. */
  readonly anchor: string;
  /** Verbatim, with single spaces. */
  readonly text: string;
}

const protocol = (anchor: string, text: string): Sentence => ({ document: 'docs/agent-protocol.md', anchor, text });
const dataPlane = (anchor: string, text: string): Sentence => ({ document: 'docs/data-plane.md', anchor, text });

export const sentences = {
  // Connection
  oneConnection: protocol('connection', '**Both must use the same HTTP/2 connection**'),
  callCosts: protocol('opensession', 'Under load an answer may take up to 2 seconds.'),

  // Keys
  pskNotLogged: protocol('keys', 'Log neither the PSK nor a key that comes from it.'),

  // OpenSession
  protocolVersion: protocol(
    'opensession',
    '`OpenSessionRequest{node_id, protocol_version = 1, handshake = message 1}`',
  ),
  messageOne: protocol('opensession', 'message 1 -> psk, e, es, ss payload: SessionOffer, encoded'),
  nonce: protocol('opensession', "In `SessionOffer`, `timestamp_ms` is the agent's clock and `nonce` 16 random bytes."),
  newMessageOne: protocol('opensession', '**Make a new message 1 for each attempt**, with a new ephemeral key'),
  serviceProven: protocol('opensession', 'The agent reads message 2, which authenticates the service'),
  sessionId: protocol('opensession', 'checks that `session_id` is the first 16 bytes of the handshake hash `h`'),
  skewOffset: protocol(
    'opensession',
    'add `server-time-ms` − own time to the timestamps of your offers, and try again at once, once',
  ),
  refusalIsNotFinal: protocol('opensession', 'back off, try again: a store may be being restored'),
  backoff: protocol(
    'an-agent-in-outline',
    '`backoff` is 0.5 to 30 seconds with jitter, and begins anew once the service has answered on a session.',
  ),

  // Control
  idOnFirstFrame: protocol('control', "only on the agent's first frame; empty afterwards"),
  sequence: protocol('control', '0, 1, 2, … in each direction, without a gap'),
  ciphertext: protocol('control', 'one Noise transport message, at most 65,535 bytes'),
  fragmentByte: protocol('control', '0x01 more fragments follow; this one has at least 16 KiB'),
  joined: protocol(
    'control',
    'The joined fragments of a message are one `AgentPayload` (at most 4 MiB) or one `ServicePayload` (at most 16 MiB).',
  ),
  helloFirst: protocol(
    'control',
    "The agent's first payload is `AgentHello`, within 10 seconds of opening the stream.",
  ),
  ownNodeId: protocol('control', "`node_id` in a payload is the session's, or empty."),
  unknownPayload: protocol('control', 'Ignore a `ServicePayload` that you do not know'),
  unknownFields: protocol('control', 'and unknown fields, commands and enum values in the messages that you do know'),
  badFrame: protocol(
    'control',
    'An agent that gets a frame with another `sequence`, a tag that does not verify, or a wrong fragment byte acts on nothing of it, ' +
      'drops the connection and reconnects with backoff.',
  ),

  // Configuration
  request: protocol(
    'configuration',
    'After the hello, send `ConfigRequest`: `config_version` 0 if the process holds no configuration, else the generation that it ' +
      'applied last, with its `checksum`.',
  ),
  olderIgnored: protocol(
    'configuration',
    'Ignore a snapshot whose generation is below your own, which is the one that you applied last',
  ),
  rejectedDoNotCount: protocol('configuration', 'rejected generations do not count'),
  applyWhole: protocol('configuration', 'Apply any other snapshot, an equal one included, completely or not at all.'),
  report: protocol(
    'configuration',
    'Answer with `ConfigApplyReport`: `generation`, `checksum`, APPLIED or REJECTED, at most 1,000 errors.',
  ),
  newestReplaces: protocol(
    'configuration',
    'Each replaces all earlier ones: a slow reader misses some and gets the newest.',
  ),
  origin: protocol(
    'configuration',
    'Each rule carries its origin: `resource_type`, `resource_id` and `path` (the field as REST names it, `hops[1].listen_port`) ' +
      'tell the operator what to change.',
  ),
  keepsOnUnchangedZero: protocol(
    'configuration',
    "`unchanged` with generation 0 means that the service cannot make this node's configuration now and has no earlier one: keep " +
      'what runs',
  ),
  checksumEchoed: protocol('configuration', '`checksum` is opaque: 32 bytes to be echoed.'),
  nothingOnDisk: protocol('configuration', 'Keep no configuration on disk'),
  keepsRunning: protocol('configuration', 'a lost connection changes nothing on the node'),
  repeatsReport: protocol(
    'configuration',
    'On each new session repeat the last report exactly as it was, also if it is a reject.',
  ),
  legacyIgnored: protocol('configuration', 'The legacy forms of `ConfigUpdate` are never sent, and applied by nobody.'),
  staysConfirmed: protocol(
    'configuration',
    'Unless `ConfigConfirmed` with its generation comes within that time after you applied it, go back',
  ),
  goesBack: protocol(
    'configuration',
    'go back to the last one that was confirmed or had no such field, and report the generation as REJECTED (`path` empty, ' +
      '`message` "not confirmed in n s")',
  ),
  namesWhereItWentBack: protocol('configuration', 'Your request then names the one that you went back to.'),
  reload: protocol(
    'configuration',
    'The command RELOAD_CONFIG asks for it at once: answer it with a ConfigRequest of version 0.',
  ),

  // Rules
  staysOpen: protocol(
    'rules',
    'Sockets that are in the old and the new snapshot stay open, and so do their connections',
  ),
  keepsWhatRan: protocol(
    'rules',
    'close what is new, keep what ran, and report REJECTED with every error that you know',
  ),
  unsupported: protocol('rules', 'Reject the snapshot, with the field that asks for it (`hops[1].security`)'),
  relays: protocol('rules', 'relays bytes'),

  // The data plane
  prompt: dataPlane('tcp', 'Bytes are passed on as they come: a relay never waits for more.'),
  backpressure: dataPlane('tcp', 'joins the two: bytes both ways, with backpressure.'),
  halfClose: dataPlane('tcp', 'An end of one direction (FIN) is passed on as an end; the other direction stays open.'),
  resets: dataPlane(
    'tcp',
    'A reset, or any other failure, of one side resets the other one, so that nobody takes a failure for a regular end.',
  ),
  bytesOfClients: dataPlane('what-an-agent-reports', 'from and to clients: the contents'),
  sessionsCounted: dataPlane('what-an-agent-reports', 'connections (HTTP: requests; UDP: flows).'),
  errorsCounted: dataPlane('what-an-agent-reports', 'Error: refused, or ended otherwise than by a regular end.'),
  matchOfRoute: dataPlane('what-an-agent-reports', '| raw | `default` | empty;'),

  // Heartbeats, commands, metrics
  heartbeat: protocol(
    'heartbeats-commands-metrics',
    'Send a `HeartbeatRequest` after each heartbeat interval, the first one an interval after the hello or sooner',
  ),
  wholeTable: protocol(
    'heartbeats-commands-metrics',
    'always with the whole table of listeners; an empty table says that nothing listens',
  ),
  routeState: protocol(
    'heartbeats-commands-metrics',
    '`RuntimeRoute.state` is empty, or of a REALITY route `target_unreachable` or `target_unusable`',
  ),
  nextHop: protocol('heartbeats-commands-metrics', '`next_hop` of a route is `host:port`'),
  shares: protocol('heartbeats-commands-metrics', '`cpu_usage` and `memory_usage` are shares between 0 and 1'),
  uptime: protocol('heartbeats-commands-metrics', '`uptime_seconds` the seconds since your process started'),
  timestamp: protocol('heartbeats-commands-metrics', "`timestamp` the time by the node's clock"),
  intervals: protocol(
    'heartbeats-commands-metrics',
    'The `HeartbeatResponse` carries the intervals in force from now on; the first ones are in `SessionGrant`.',
  ),
  unanswered: protocol(
    'heartbeats-commands-metrics',
    'If three responses in a row are missing, the connection is lost: reconnect.',
  ),
  unknownCommand: protocol('heartbeats-commands-metrics', 'Ignore a command that you do not know.'),
  diagnostics: protocol('heartbeats-commands-metrics', 'answer with a `DiagnosticsReport` within 30 seconds'),
  diagnosticsItems: protocol(
    'heartbeats-commands-metrics',
    'each listener, and each peer, upstream and target that your rules name, by address and port',
  ),
  diagnosticsOk: protocol(
    'heartbeats-commands-metrics',
    '`ok` is false for whatever you have not reached or not tried.',
  ),
  diagnosticsSecrets: protocol('heartbeats-commands-metrics', 'Leave secrets out.'),
  diagnosticsAsked: protocol('heartbeats-commands-metrics', 'Send none that was not asked for'),
  metrics: protocol(
    'heartbeats-commands-metrics',
    'Send a `MetricsReport` after each metrics interval; it is not answered.',
  ),
  processId: protocol(
    'heartbeats-commands-metrics',
    '`AgentHello.process_id` names: 16 random bytes, made at its start',
  ),
  countersRise: protocol(
    'heartbeats-commands-metrics',
    'All counters, those of listeners and links too, begin at 0 with your process',
  ),

  // Rekey
  rekeyInTime: protocol(
    'rekey',
    "After the smaller of the agent's own interval and the grant's `rekey_after_secs`, with 10 % jitter either way",
  ),
  rekeyClose: protocol('rekey', '`SessionClose{REKEY}` on the old stream; wait for its end, 2 seconds at most.'),
  rekeyThenHello: protocol(
    'rekey',
    'Open a new Control stream with the new session: hello, the last apply report, ConfigRequest.',
  ),
  rekeyRefused: protocol('rekey', 'If OpenSession fails, keep the old session and try again with backoff.'),

  // How a session ends
  bareStatus: protocol(
    'how-a-session-ends',
    'A bare gRPC status, of any code, is a lost connection: reconnect with backoff',
  ),
  noAnswerToClose: protocol(
    'how-a-session-ends',
    "Do not answer the service's SessionClose: read the stream to its end and close.",
  ),
  superseded: protocol('how-a-session-ends', 'waits 60 s, unless it opened that session itself'),
  revoked: protocol('how-a-session-ends', 'tells its operator; tries again every 5 minutes'),
  reconnects: protocol('how-a-session-ends', 'reconnects with backoff'),
  retryAfter: protocol('how-a-session-ends', 'reconnects after `retry_after_ms`'),
  protocolError: protocol(
    'how-a-session-ends',
    'a fault of the agent, which logs `message`; reconnects after 30 s or more',
  ),
  unknownReason: protocol('how-a-session-ends', 'an unknown reason'),
  normal: protocol('how-a-session-ends', 'An agent ends a session with `SessionClose{NORMAL}`.'),

  // Limits
  limits: protocol(
    'how-a-session-ends',
    "something that does not parse, a wrong fragment byte, a size or count beyond its limit, a message not complete in 30 s, another node's " +
      '`node_id` or another `session_id`',
  ),
  firstPayloads: protocol(
    'how-a-session-ends',
    'the first payload was no hello, no hello within 10 s, a second hello, an absurd `config_version`',
  ),
  diagnosticsBound: protocol('limits', 'a diagnostics report; items and lines of the log in it | 64 KiB; 1,000; 100'),
  errorsBound: protocol('limits', 'errors in one apply report | 1,000'),
  textBound: protocol('limits', 'any text | 1,024 bytes of UTF-8: shorten messages before you send them'),
} as const satisfies Readonly<Record<string, Sentence>>;

export type SentenceName = keyof typeof sentences;

/** Duties of an agent that no run of the kit can find broken. */
export const notChecked: readonly { readonly sentence: Sentence; readonly why: string }[] = [
  {
    sentence: protocol(
      'how-a-session-ends',
      'tries again every 5 minutes, also while OpenSession answers UNAUTHENTICATED',
    ),
    why: 'this takes more than five minutes: a run only sees that the agent does not come back at once',
  },
  {
    sentence: protocol('control', 'A message must be complete within 30 seconds of its first fragment.'),
    why: 'only checked for what the agent sends; giving up on an unfinished message from the service takes 30 seconds',
  },
  {
    sentence: protocol('connection', 'a connection that leaves it unanswered for 20 seconds is closed'),
    why: 'HTTP/2 libraries answer pings by themselves',
  },
  {
    sentence: protocol('limits', 'bytes of frames | 512 KiB a second, 4 MiB at once'),
    why: 'it is no fault to send more: the service reads later',
  },
  {
    sentence: protocol('connection', 'Where the operator has turned on REALITY, the same is spoken inside it'),
    why: 'the kit speaks h2c only; REALITY has vectors of its own',
  },
  {
    sentence: protocol('rules', 'What a rule asks of an agent.'),
    why: 'the kit sends traffic through a RAW rule; docs/data-plane.md and its vectors are for the other kinds',
  },
];
