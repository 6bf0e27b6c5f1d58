/**
 * The reference agent with a mistake: one piece of its source replaced by another, or the messages that it sends changed. Built by
 * esbuild and loaded into the test's process. A piece that its file does not have once fails the test, so that no mistake is lost
 * when the agent changes.
 */
import type { AgentMessage } from '../../src/agent/control/stream.js';
import type { SentenceName } from '../../scripts/agent-check/sentences.js';

export interface Mistake {
  /** What the agent does wrong. */
  readonly what: string;
  /** The scenario that finds it, and the sentence that it names. */
  readonly scenario: string;
  readonly sentence: SentenceName;
  readonly change: SourceChange | (() => MessageChange);
}

export interface SourceChange {
  /** Below src/. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

type Case = AgentMessage['$case'];
type ValueOf<C extends Case> = Extract<AgentMessage, { readonly $case: C }>['value'];
/** By kind of message: what is sent in its place. */
export type MessageChange = { readonly [C in Case]?: (value: ValueOf<C>) => ValueOf<C> };

type Planted = Omit<Mistake, 'scenario'>;

const inScenario = (scenario: string, planted: readonly Planted[]): readonly Mistake[] =>
  planted.map((mistake) => ({ ...mistake, scenario }));
const source = (sentence: SentenceName, what: string, file: string, from: string, to: string): Planted => ({
  sentence,
  what,
  change: { file: `agent/${file}.ts`, from, to },
});
/** @param change is made anew for each agent */
const sent = (sentence: SentenceName, what: string, change: () => MessageChange): Planted => ({
  sentence,
  what,
  change,
});

const [stream, client, opening] = ['control/stream', 'control/client', 'control/opening'];
const [confirming, loop] = ['control/confirming', 'control/session-loop'];
const [session, connection, reconnect] = ['control/session', 'control/connection', 'control/reconnect'];
const [splice, meters, listeners] = ['relays/splice', 'relays/meters', 'relays/listener-set'];
const write = 'if (!to.write(chunk)) from.pause();';
const emptySnapshot =
  "{ nodeId: '', generation: gateway.applied?.generation ?? 1n, checksum: Buffer.alloc(32), gateway: undefined, l3: undefined, node: undefined }";

export const mistakes: readonly Mistake[] = [
  ...inScenario('first-session', [
    source(
      'protocolVersion',
      'speaks another version',
      opening,
      'protocolVersion: limits.agent.protocolVersion',
      'protocolVersion: 2',
    ),
    source(
      'messageOne',
      'makes a prologue without its node',
      opening,
      'controlPrologue(nodeId)',
      "controlPrologue('')",
    ),
    source('nonce', 'offers a short nonce', opening, 'randomBytes(limits.agent.nonceBytes)', 'randomBytes(8)'),
    source(
      'oneConnection',
      'attaches its session on another connection',
      client,
      'attachStream(client.control(), noise',
      "attachStream(new SecureAgentServiceClient(formatHostPort(options.endpoint), channel, { 'grpc.use_local_subchannel_pool': 1 }).control(), noise",
    ),
    source(
      'idOnFirstFrame',
      'names its session in every frame',
      stream,
      'sessionId: attached ? empty : Buffer.from(sessionId)',
      'sessionId: Buffer.from(sessionId)',
    ),
    source(
      'sequence',
      'counts frames from 1',
      stream,
      'sequence: BigInt(sequence),',
      'sequence: BigInt(sequence + 1),',
    ),
    source(
      'ciphertext',
      'sends another ciphertext',
      stream,
      'ciphertext: Buffer.from(encrypted.value),',
      'ciphertext: Buffer.from(encrypted.value).reverse(),',
    ),
    source(
      'fragmentByte',
      'marks its last fragments otherwise',
      stream,
      'noise.send.encrypt(sequence, plaintext)',
      'noise.send.encrypt(sequence, Buffer.concat([Buffer.of(2), plaintext.subarray(1)]))',
    ),
    source('helloFirst', 'says no hello', session, "stream.send({ $case: 'hello', value: dependencies.hello() });", ''),
    source(
      'firstPayloads',
      'says hello twice',
      session,
      'requestConfig(false);',
      "requestConfig(false); stream.send({ $case: 'hello', value: dependencies.hello() });",
    ),
    source('routeState', 'makes up a state of its routes', 'plan/rule-checks', "state: '',", "state: 'running',"),
    source(
      'wholeTable',
      'sends heartbeats without its table',
      session,
      'runtimeListeners: gateway.runtimeListeners()',
      'runtimeListeners: []',
    ),
    source('heartbeat', 'sends no heartbeats by itself', session, 'heartbeats.start(', 'void ('),
    source('metrics', 'sends no metrics', session, 'metrics.start(intervals.metrics);', ''),
    source(
      'newestReplaces',
      'closes no listener',
      listeners,
      'void listener.close(drainMs).finally(() => draining.delete(listener));',
      '',
    ),
    source('relays', 'relays other bytes', splice, write, 'if (!to.write(Buffer.alloc(chunk.length))) from.pause();'),
    source(
      'pskNotLogged',
      'logs the key of its PSK',
      'agent',
      'const processId = randomBytes(16);',
      "const processId = randomBytes(16); logger.info({ key: Buffer.from(config.keys.psk).toString('hex') }, 'starting');",
    ),
    sent('ownNodeId', 'names another node', () => ({ heartbeat: (beat) => ({ ...beat, nodeId: 'another' }) })),
    sent('limits', 'names a port that there is not', () => ({
      heartbeat: (beat) => ({
        ...beat,
        runtimeListeners: beat.runtimeListeners.map((one) => ({ ...one, listenPort: 70_000 })),
      }),
    })),
    sent('textBound', 'has a long version', () => ({
      hello: (hello) => ({ ...hello, agentVersion: 'x'.repeat(2_000) }),
    })),
    sent('processId', 'names its process shortly', () => ({
      hello: (hello) => ({ ...hello, processId: Buffer.alloc(8) }),
    })),
    sent('report', 'reports without a status', () => ({ applyReport: (report) => ({ ...report, status: 0 }) })),
    sent('checksumEchoed', 'reports without the checksum', () => ({
      applyReport: (report) => ({ ...report, checksum: Buffer.alloc(32) }),
    })),
    sent('countersRise', 'counts down', () => {
      let bytesIn = 1_000n;
      return {
        heartbeat: (beat) => ({
          ...beat,
          runtimeListeners: beat.runtimeListeners.map((one) => ({ ...one, bytesIn: (bytesIn -= 1n) })),
        }),
      };
    }),
    sent('shares', 'gives the use of its processors in percent', () => ({
      heartbeat: (beat) => ({ ...beat, cpuUsage: beat.cpuUsage * 100 }),
    })),
    sent('shares', 'gives the use of its memory in percent', () => ({
      heartbeat: (beat) => ({ ...beat, memoryUsage: beat.memoryUsage * 100 }),
    })),
    sent('uptime', 'gives its uptime in milliseconds', () => ({
      heartbeat: (beat) => ({ ...beat, uptimeSeconds: BigInt(Math.round(process.uptime() * 1000)) }),
    })),
    sent('timestamp', 'gives milliseconds for seconds', () => ({
      heartbeat: (beat) => ({ ...beat, timestamp: { seconds: (beat.timestamp?.seconds ?? 0n) * 1000n, nanos: 0 } }),
    })),
  ]),
  ...inScenario('relaying', [
    source('prompt', 'delays what it relays', splice, write, 'setTimeout(() => to.write(chunk), 1_500);'),
    source(
      'halfClose',
      'swallows the end of a client',
      splice,
      ': end(toSide)));',
      ': fromSide !== client && end(toSide)));',
    ),
    source(
      'halfClose',
      'swallows the end of a next hop',
      splice,
      ': end(toSide)));',
      ': fromSide === client && end(toSide)));',
    ),
    source(
      'halfClose',
      'ends both directions with the first',
      splice,
      'to.stream.end();',
      'client.stream.end(); upstream.stream.end();',
    ),
    source(
      'resets',
      'ends a connection where it should reset it',
      splice,
      'reset: () => reset(socket),',
      'reset: () => void socket.end(),',
    ),
    source(
      'bytesOfClients',
      'counts the last bytes alone',
      meters,
      'values.bytesIn += bytes;',
      'values.bytesIn = bytes;',
    ),
    source('countersRise', 'does not add bytes to those of the node', meters, 'parent?.received(bytes);', ''),
    source('sessionsCounted', 'never counts a session as over', meters, 'values.activeSessions -= 1;', ''),
    source('errorsCounted', 'counts no errors', meters, 'if (failed) values.errorSessions += 1;', ''),
    sent('bytesOfClients', 'swaps the bytes of its listeners', () => ({
      heartbeat: (beat) => ({
        ...beat,
        runtimeListeners: beat.runtimeListeners.map((one) => ({
          ...one,
          bytesIn: one.bytesOut,
          bytesOut: one.bytesIn,
        })),
      }),
    })),
    sent('nextHop', 'names its next hops without a port', () => ({
      heartbeat: (beat) => routesOf(beat, (route) => ({ ...route, nextHop: route.nextHop.replace(/:\d+$/, '') })),
    })),
    sent('matchOfRoute', 'names the security for the match', () => ({
      heartbeat: (beat) => routesOf(beat, (route) => ({ ...route, matchKind: 'raw' })),
    })),
  ]),
  ...inScenario('slow-reader', [
    source('backpressure', 'reads on while nobody takes it', splice, write, 'to.write(chunk);'),
  ]),
  ...inScenario('edits', [
    source(
      'staysOpen',
      'cuts connections at an edit',
      'relays/tcp-listener',
      'hops.keep(hopsOf({ service }));',
      'hops.keep(hopsOf({ service })); for (const client of sessions.keys()) reset(client);',
    ),
    source(
      'keepsWhatRan',
      'closes everything when a port is taken',
      listeners,
      'return err(errors);',
      'await Promise.all(Array.from(running.values(), ({ listener }) => listener.close(0))); return err(errors);',
    ),
    source(
      'applyWhole',
      'runs the part of a snapshot that it could open',
      listeners,
      'return err(errors);',
      'for (const plan of added) void open[plan.transport](plan, dependencies).then((one) => one.serve(plan), () => undefined); return err(errors);',
    ),
    source(
      'legacyIgnored',
      'applies a legacy update',
      session,
      "case 'gatewayConfig':",
      "case 'gatewayConfig': return onSnapshot({ nodeId, generation: 1_000_000n, checksum: Buffer.alloc(32), gateway: update.value, l3: undefined, node: undefined });",
    ),
  ]),
  ...inScenario('heartbeats', [
    source('reload', 'does not reload', session, 'return reload();', 'return;'),
    source(
      'unknownCommand',
      'leaves at a command that it does not know',
      session,
      'for (const command of response.commands) obey',
      "if (response.commands.some((command) => command > 3)) return stream.cut('unknown'); for (const command of response.commands) obey",
    ),
    source('intervals', 'keeps its interval of heartbeats', session, 'heartbeats.every(', 'void ('),
    source('intervals', 'keeps its interval of metrics', session, 'metrics.every(', 'void ('),
    source(
      'unanswered',
      'waits for answers for ever',
      session,
      'unanswered >= limits.agentControl.missedHeartbeats',
      'false',
    ),
  ]),
  ...inScenario('confirmed-changes', [
    source(
      'staysConfirmed',
      'does not hear that it is confirmed',
      confirming,
      'return { last: waiting.snapshot, waiting: undefined };',
      'return state;',
    ),
    source(
      'goesBack',
      'stays with what nobody confirms',
      confirming,
      'last === undefined ? undefined : waiting?.due',
      'undefined',
    ),
    source(
      'goesBack',
      'says in its own words why it went back',
      'control/applier',
      'const message = `not confirmed in ${waiting.secs} s`;',
      "const message = 'timed out';",
    ),
    source(
      'goesBack',
      'goes back to what ran before the confirmed one',
      confirming,
      'return { last: waiting.snapshot, waiting: undefined };',
      'return { last: state.last, waiting: undefined };',
    ),
    sent('namesWhereItWentBack', 'asks as if it had not gone back', () => {
      let highest = 0n;
      return {
        applyReport: (report) => {
          if (report.generation > highest) highest = report.generation;
          return report;
        },
        configRequest: (request) => ({ ...request, configVersion: highest }),
      };
    }),
  ]),
  ...inScenario('diagnostics', [
    source('diagnostics', 'only logs that it is to check itself', session, 'return onDiagnose();', 'return;'),
    source('diagnosticsItems', 'tries nothing', 'diagnosis/diagnose', '    ...probes,\n', ''),
    source(
      'diagnosticsOk',
      'takes an error for an answer',
      'diagnosis/probes',
      'if (why === undefined) return',
      'if (why !== probe.what) return',
    ),
    source(
      'diagnosticsSecrets',
      'tells its key',
      'agent',
      'lastReport: () => loop.lastReport, logLines }',
      "lastReport: () => loop.lastReport, logLines: () => [Buffer.from(config.keys.psk).toString('hex')] }",
    ),
    source(
      'diagnosticsAsked',
      'answers twice',
      session,
      'return onDiagnose();',
      'setTimeout(onDiagnose, 1_000); return onDiagnose();',
    ),
    sent('diagnosticsBound', 'sends a long log', () => ({
      diagnostics: (report) => ({ ...report, log: Array.from({ length: 101 }, () => 'line') }),
    })),
  ]),
  ...inScenario('rekey', [
    source(
      'rekeyInTime',
      'replaces its session too soon',
      reconnect,
      'granted) * 1000 * jitter',
      'granted) * 100 * jitter',
    ),
    source(
      'rekeyClose',
      'says NORMAL when it replaces a session',
      connection,
      'SessionCloseReason.NORMAL : SessionCloseReason.REKEY',
      'SessionCloseReason.NORMAL : SessionCloseReason.NORMAL',
    ),
    source(
      'rekeyThenHello',
      'asks before it repeats its report',
      session,
      'const last = dependencies.lastReport();',
      'const last = dependencies.lastReport(); requestConfig(false);',
    ),
    source(
      'rekeyRefused',
      'gives its session up when a rekey is refused',
      connection,
      'await pause(backoff(limits.agentControl.reconnect, failures, random), isRenewal ? [over] : [over, renewed]);',
      "return { kind: 'ended', end: { kind: 'refused', ...replacement.error } };",
    ),
  ]),
  ...inScenario('closes', [
    source(
      'retryAfter',
      'does not wait as long as it is told',
      reconnect,
      'const requestedMs = Math.min(end.close.retryAfterMs, retryAfterMaxMs);',
      'const requestedMs = 0;',
    ),
    source(
      'noAnswerToClose',
      'answers a SessionClose',
      stream,
      "if (message.$case === 'close') return finish({ kind: 'closed', close: message.value });",
      "if (message.$case === 'close') { const close = message.value; send({ $case: 'close', value: close }); setTimeout(() => finish({ kind: 'closed', close }), 50); return; }",
    ),
    source(
      'reconnects',
      'never comes back after IDLE',
      reconnect,
      'return Math.max(backoffMs, leastAfter(end, revoked));',
      "return end.kind === 'closed' && end.close.reason === SessionCloseReason.IDLE ? 3_600_000 : Math.max(backoffMs, leastAfter(end, revoked));",
    ),
    source(
      'unknownReason',
      'never comes back after an unknown reason',
      reconnect,
      'return Math.max(backoffMs, leastAfter(end, revoked));',
      "return end.kind === 'closed' && end.close.reason > 20 ? 3_600_000 : Math.max(backoffMs, leastAfter(end, revoked));",
    ),
  ]),
  ...inScenario('superseded', [
    source(
      'superseded',
      'comes back at once after SUPERSEDED',
      reconnect,
      'return Math.max(requestedMs, supersededWaitMs);',
      'return requestedMs;',
    ),
  ]),
  ...inScenario('protocol-error', [
    source(
      'protocolError',
      'comes back at once after PROTOCOL_ERROR',
      reconnect,
      'return Math.max(requestedMs, protocolErrorWaitMs);',
      'return requestedMs;',
    ),
  ]),
  ...inScenario('revoked', [
    source(
      'revoked',
      'comes back at once after REVOKED',
      reconnect,
      'return Math.max(requestedMs, revokedRetryMs);',
      'return requestedMs;',
    ),
  ]),
  ...inScenario('bare-statuses', [
    source(
      'bareStatus',
      'believes a bare PERMISSION_DENIED',
      stream,
      "call.on('status', (status: StatusObject) => lose(",
      "call.on('status', (status) => status.code === 7 ? finish({ kind: 'closed', close: { reason: 4, message: '', retryAfterMs: 0 } }) : lose(",
    ),
  ]),
  ...inScenario('bad-frames', [
    source(
      'badFrame',
      'goes on after a frame that does not verify',
      stream,
      'if (!plaintext.ok) return lose(`frame refused: ${plaintext.error}`);',
      'if (!plaintext.ok) return;',
    ),
  ]),
  ...inScenario('fragments', [
    source(
      'joined',
      'joins no more than 4 MiB',
      stream,
      'new Joiner(limits.agent.joinedOutBytes)',
      'new Joiner(limits.agent.joinedInBytes)',
    ),
  ]),
  ...inScenario('later-service', [
    source(
      'unknownPayload',
      'leaves at a payload that it does not know',
      stream,
      'if (message === undefined) return;',
      "if (message === undefined) return lose('unknown');",
    ),
    source(
      'unknownFields',
      'leaves at fields that it does not know',
      stream,
      "if (message.$case === 'close') return finish",
      "if (message.$case === 'configUpdate' && message.value.update?.$case === 'snapshot' && ServicePayload.encode({ payload: message }).finish().length < bytes.length) return lose('unknown'); if (message.$case === 'close') return finish",
    ),
  ]),
  ...inScenario('lost-connection', [
    source(
      'request',
      'asks for everything on each new session',
      session,
      'fresh ? undefined : gateway.applied',
      'undefined',
    ),
    source(
      'repeatsReport',
      'does not repeat its last report',
      session,
      'if (last !== undefined) stream.send',
      'if (false) stream.send',
    ),
    source(
      'newMessageOne',
      'uses a nonce again',
      opening,
      'nonce: randomBytes(limits.agent.nonceBytes)',
      'nonce: Buffer.alloc(limits.agent.nonceBytes)',
    ),
    source(
      'keepsRunning',
      'stops relaying without a session',
      loop,
      'const delay = pace.after(end);',
      `await gateway.apply(${emptySnapshot}); const delay = pace.after(end);`,
    ),
    source(
      'keepsOnUnchangedZero',
      'takes `unchanged` 0 for nothing',
      session,
      'return takeUpdate(message.value, dependencies);',
      `if (message.value.update?.$case === 'unchanged' && message.value.update.value.generation === 0n) return dependencies.onSnapshot(${emptySnapshot}); return takeUpdate(message.value, dependencies);`,
    ),
  ]),
  ...inScenario('snapshots', [
    source(
      'olderIgnored',
      'applies a snapshot that is older than its own',
      'runtime',
      'generation < applied.generation',
      'false',
    ),
    source(
      'applyWhole',
      'does not apply a snapshot again',
      'runtime',
      'generation < applied.generation',
      'generation <= applied.generation',
    ),
  ]),
  ...inScenario('rejects', [
    source(
      'keepsWhatRan',
      'says that it applied what it could not',
      'runtime',
      'status: errors.length === 0 ? ConfigApplyStatus.APPLIED : ConfigApplyStatus.REJECTED',
      'status: ConfigApplyStatus.APPLIED',
    ),
    source(
      'errorsBound',
      'reports more errors than a report may have',
      'runtime',
      'errors: errors.slice(0, limits.agent.applyErrors)',
      'errors',
    ),
    source(
      'rejectedDoNotCount',
      'remembers what it rejected as applied',
      'runtime',
      'if (errors.length === 0) {',
      'if (errors.length > 0) applied = { generation, checksum: Buffer.from(checksum) }; if (errors.length === 0) {',
    ),
    source(
      'origin',
      'rejects without a resource',
      'plan/apply-error',
      'resourceId: origin.resourceId, path, message',
      "resourceId: '', path, message",
    ),
  ]),
  ...inScenario('kinds', [
    source(
      'unsupported',
      'rejects without the field',
      'plan/apply-error',
      'resourceId: origin.resourceId, path, message',
      "resourceId: origin.resourceId, path: '', message",
    ),
  ]),
  ...inScenario('refusals', [
    source('callCosts', 'waits a second for an answer', client, 'Date.now() + openTimeoutMs', 'Date.now() + 1_000'),
    source(
      'refusalIsNotFinal',
      'gives up when it is refused',
      loop,
      'if (stop.signal.aborted) break;',
      "if (stop.signal.aborted || end.kind === 'refused') break;",
    ),
  ]),
  ...inScenario('false-service', [
    {
      sentence: 'serviceProven',
      what: 'does not look at the tag of message 2',
      change: {
        file: 'channel/noise/symmetric-state.ts',
        from: 'if (plaintext === undefined) return undefined;',
        to: 'if (plaintext === undefined) { const mended = Buffer.from(ciphertext); mended.writeUInt8(mended.readUInt8(mended.length - 1) ^ 1, mended.length - 1); return this.decryptAndHash(mended); }',
      },
    },
    source(
      'sessionId',
      'does not compare the session id with the handshake',
      opening,
      '&& answer.sessionId.equals(sessionId)',
      '',
    ),
  ]),
  ...inScenario('clock-skew', [
    source(
      'skewOffset',
      'does not take the clock of the service',
      client,
      'offset.milliseconds = serverTime - clock.now();',
      '',
    ),
    source('backoff', 'waits for nothing', loop, 'const delay = pace.after(end);', 'const delay = 10;'),
  ]),
  ...inScenario('stopping', [
    source(
      'normal',
      'ends without a word',
      session,
      "await stream.close({ reason, message: '', retryAfterMs: 0 }, limits.agentControl.closeWaitMs);",
      "stream.cut('stopped');",
    ),
    sent('nothingOnDisk', 'begins with the configuration of the process before', () => {
      let kept: ValueOf<'applyReport'> | undefined;
      return {
        applyReport: (report) => (kept = report),
        configRequest: (request) =>
          request.configVersion === 0n && kept !== undefined
            ? { ...request, configVersion: kept.generation, checksum: kept.checksum }
            : request,
      };
    }),
  ]),
];

type Route = ValueOf<'heartbeat'>['runtimeListeners'][number]['routes'][number];

function routesOf(beat: ValueOf<'heartbeat'>, change: (route: Route) => Route): ValueOf<'heartbeat'> {
  return {
    ...beat,
    runtimeListeners: beat.runtimeListeners.map((one) => ({ ...one, routes: one.routes.map(change) })),
  };
}
