/**
 * An agent from the documents alone: docs/agent-protocol.md, "An agent in outline", line by line. It relays RAW TCP (relay.ts) and
 * rejects the rest. `SVC_AGENT_ID=… SVC_CONTROL_ENDPOINT=http://… SVC_CONTROL_PSK=… npx tsx examples/agent-ts/agent.ts`
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { startHandshake, type Direction } from './noise.js';
import { apply, table, totals, type Snapshot } from './relay.js';
import {
  connect,
  fromAgent,
  fromService,
  grants,
  offers,
  serverTimeOf,
  type Client,
  type Frame,
  type FromService,
  type Grant,
} from './wire.js';

const { SVC_AGENT_ID: nodeId = '', SVC_CONTROL_ENDPOINT: endpoint = '', SVC_CONTROL_PSK: psk = '' } = process.env;
const agentVersion = 'example-ts/1';
const processId = randomBytes(16);
const fragmentBytes = 65_000;

let offset = 0; // service time - own time
let applied: { generation: string; checksum: Buffer } | undefined; // in memory only
let lastReport: object | undefined;
let failures = 0; // attempts in a row without an answer
let stopping = false;
const stop = new Promise<void>((resolve) => {
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => resolve(void (stopping = true)));
});

interface Session {
  readonly sessionId: Buffer;
  readonly send: Direction;
  readonly receive: Direction;
  readonly grant: Grant;
}
interface End {
  readonly reason: string;
  readonly retryAfterMs: number;
}

const backoff = (): number => Math.min(30_000, 1_000 * 2 ** Math.min(failures++, 6)) * (0.5 + Math.random() / 2);

/**
 * Opens a session; if it is refused for clock skew, tries once more at once.
 * @throws what gRPC or the handshake says
 */
async function openSession(client: Client, mayRetry = true): Promise<Session> {
  const timestampMs = Math.max(0, Math.round(Date.now() + offset));
  const handshake = startHandshake(
    psk,
    nodeId,
    offers.serialize({ timestampMs, nonce: randomBytes(16), agentVersion }),
  );
  const request = { nodeId, protocolVersion: 1, handshake: handshake.messageOne };
  try {
    const answer = await new Promise<{ sessionId: Buffer; handshake: Buffer }>((resolve, reject) => {
      const done = (error: Error | null, value: { sessionId: Buffer; handshake: Buffer }): void =>
        error === null ? resolve(value) : reject(error);
      client.openSession(request, { deadline: Date.now() + 10_000 }, done);
    });
    const { grant, ...session } = handshake.finish(answer.handshake);
    if (!session.sessionId.equals(answer.sessionId)) throw new Error('the session id is not that of the handshake');
    return { ...session, grant: grants.deserialize(grant) };
  } catch (error) {
    const serverTime = serverTimeOf(error);
    if (!mayRetry || serverTime === undefined) throw error;
    offset = serverTime - Date.now();
    return openSession(client, false);
  }
}

/** Runs a session to its end. @returns the session that replaces it, or how it ended */
async function run(client: Client, session: Session): Promise<Session | End> {
  const stream = client.control();
  let end: End = { reason: 'lost', retryAfterMs: 0 };
  stream.on('error', () => stream.destroy());
  const ended = new AbortController();
  const over = once(stream, 'close').then(
    () => ended.abort(),
    () => ended.abort(),
  );
  const wait = (ms: number): Promise<boolean> => sleep(ms, true, { signal: ended.signal }).catch(() => false);

  const send = (payload: object): void => {
    const bytes = fromAgent.serialize(payload);
    for (let from = 0; from === 0 || from < bytes.length; from += fragmentBytes) {
      const more = from + fragmentBytes < bytes.length ? 1 : 0;
      const { sequence } = session.send;
      const ciphertext = session.send.seal(
        Buffer.concat([Buffer.of(more), bytes.subarray(from, from + fragmentBytes)]),
      );
      const sessionId = sequence === 0n ? session.sessionId : '';
      if (!stream.destroyed) stream.write({ sessionId, sequence: String(sequence), ciphertext });
    }
  };
  const request = (held: typeof applied): void =>
    send({ configRequest: { nodeId, configVersion: held?.generation ?? 0, checksum: held?.checksum } });

  const onSnapshot = async (snapshot: Snapshot): Promise<void> => {
    const { generation, checksum } = snapshot;
    if (applied !== undefined && BigInt(generation) < BigInt(applied.generation)) return;
    const errors = (await apply(snapshot)).slice(0, 1_000);
    if (errors.length === 0) applied = { generation, checksum };
    const status = errors.length === 0 ? 'CONFIG_APPLY_STATUS_APPLIED' : 'CONFIG_APPLY_STATUS_REJECTED';
    lastReport = { applyReport: { generation, checksum, status, errors } };
    send(lastReport);
  };
  let applying = Promise.resolve();
  let intervals: Omit<Grant, 'rekeyAfterSecs'> = session.grant;
  let [unanswered, sequence] = [0, 0];
  const onPayload = ({ heartbeatResponse, configUpdate, close }: FromService): void => {
    failures = 0;
    if (close) end = { reason: String(close.reason), retryAfterMs: close.retryAfterMs };
    const snapshot = configUpdate?.snapshot;
    if (snapshot) applying = applying.then(() => onSnapshot(snapshot));
    if (!heartbeatResponse) return;
    unanswered = 0;
    intervals = heartbeatResponse;
    if (heartbeatResponse.commands.includes('RELOAD_CONFIG')) request(undefined);
  };

  let [parts, bytes]: [Buffer[], number] = [[], 0];
  stream.on('data', (frame: Frame) => {
    try {
      if (BigInt(frame.sequence) !== session.receive.sequence) throw new Error('wrong sequence');
      const plaintext = session.receive.open(frame.ciphertext);
      const [marker = 2, fragment] = [plaintext[0], plaintext.subarray(1)];
      parts.push(fragment);
      bytes += fragment.length;
      if (marker > 1 || bytes > 16 * 2 ** 20) throw new Error('wrong fragment');
      if (marker === 1) return;
      const payload = Buffer.concat(parts);
      [parts, bytes] = [[], 0];
      onPayload(fromService.deserialize(payload));
    } catch {
      stream.cancel();
    }
  });

  send({ hello: { nodeId, agentVersion, processId } });
  if (lastReport) send(lastReport);
  request(applied);

  const heartbeats = async (): Promise<void> => {
    while (await wait(intervals.heartbeatIntervalSecs * 1_000)) {
      if (unanswered++ >= 3) return stream.cancel();
      send({ heartbeat: { nodeId, sequence: ++sequence, runtimeListeners: table() } });
    }
  };
  const metrics = async (): Promise<void> => {
    while (await wait(intervals.metricsIntervalSecs * 1_000)) {
      send({ metrics: { sequence: ++sequence, connections: { accepted: totals.sessions }, bandwidth: totals } });
    }
  };
  void heartbeats();
  void metrics();

  let next: Session | undefined;
  await Promise.race([stop, wait((session.grant.rekeyAfterSecs || 21_600) * 1_000 * (0.9 + Math.random() / 5))]);
  while (!stopping && !ended.signal.aborted && next === undefined) {
    next = await openSession(client).catch(() => undefined);
    if (next === undefined) await Promise.race([stop, wait(backoff())]);
  }
  if (ended.signal.aborted) return end;
  send({ close: { reason: stopping ? 'SESSION_CLOSE_REASON_NORMAL' : 'SESSION_CLOSE_REASON_REKEY' } });
  stream.end();
  await Promise.race([over, sleep(2_000)]);
  ended.abort();
  stream.cancel();
  return next ?? end;
}

function waitAfter({ reason, retryAfterMs }: End): number {
  if (reason.endsWith('SUPERSEDED')) return 60_000;
  if (reason.endsWith('PROTOCOL_ERROR')) return 30_000;
  return reason.endsWith('REVOKED') ? 300_000 : retryAfterMs;
}

let revoked = false;
while (!stopping) {
  const client = connect(endpoint);
  let end: Session | End = { reason: revoked ? 'REVOKED' : 'refused', retryAfterMs: 0 };
  try {
    end = await openSession(client);
    while ('grant' in end) end = await run(client, end);
  } catch (error) {
    console.error(String(error));
  }
  client.close();
  if ('grant' in end) continue;
  revoked = end.reason.endsWith('REVOKED');
  await Promise.race([stop, sleep(Math.max(backoff(), waitAfter(end)))]);
}
process.exit(0);
