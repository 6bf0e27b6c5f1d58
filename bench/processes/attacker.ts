/**
 * A separate process that attacks the agent listener of the benchmark's own service, at a bounded rate and until it is
 * stopped. The unauthenticated attacks come from 127.0.0.2 and need no key; the authenticated ones have the PSK of a node.
 */
import { setMaxListeners } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { createControlClient, type ControlClient } from '../../src/agent/control/client.js';
import type { AgentMessage, ControlStream } from '../../src/agent/control/stream.js';
import {
  ConfigApplyReport,
  ConfigApplyStatus,
  type RuntimeConfigSnapshot,
} from '../../src/gen/svc/control/v1/config.js';
import { HeartbeatRequest } from '../../src/gen/svc/control/v1/heartbeat.js';
import { AgentHello, SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { sleep } from '../../src/kernel/background.js';
import { systemClock } from '../../src/kernel/clock.js';
import { agentKeysFrom } from '../../src/channel/noise/control-psk.js';
import {
  endHeaders,
  frame,
  FrameType,
  headerList,
  opening,
  openSessionHeaders,
  rstStream,
} from '../../scripts/stack/http2-frames.js';
import { answerParent } from '../child.js';
import type { FloodKind } from '../flood-kinds.js';

export type Attack = FloodKind | 'reset' | 'idle' | 'malformed' | 'offers' | 'hello_loop' | 'reports' | 'heartbeats';

export interface StartAttack {
  readonly attack: Attack;
  readonly host: string;
  readonly port: number;
  /** Of the attacker's own node. */
  readonly nodeId: string;
  readonly controlPsk: string;
}

const strangersAddress = '127.0.0.2';
/** As many as one process manages beside the service on two cores. */
const offersPerSecond = 200;

/**
 * Preface, SETTINGS, HEADERS of a request to `/x`, and RST_STREAM: what a library that answers a request whose stream is
 * already gone must survive.
 */
const unknownCall = headerList({ ':method': 'POST', ':scheme': 'http', ':authority': 'a', ':path': '/x' });
const requestAndReset = Buffer.concat([opening, frame(FrameType.headers, endHeaders, 1, unknownCall), rstStream(1)]);

let stopped = new AbortController();
let running: Promise<number> = Promise.resolve(0);

answerParent({
  start(attack: StartAttack) {
    stopped = new AbortController();
    running = run(attack, stopped.signal);
  },
  /** The number of connections, calls, sessions or messages sent; of offers, those that were refused. */
  async stop() {
    stopped.abort();
    return running;
  },
});

async function run(attack: StartAttack, signal: AbortSignal): Promise<number> {
  switch (attack.attack) {
    case 'reset':
      return paced(200, signal, () => write(attack, requestAndReset, 500));
    case 'idle':
      // As many as the listener lets in, opened again as it closes them.
      return paced(100, signal, () => write(attack, opening, 60_000));
    case 'malformed':
      return malformedOpens(attack, signal);
    case 'offers':
      return refusedOffers(attack, signal);
    case 'hello_loop':
      return helloLoop(attack, signal);
    case 'reports':
      return flood(attack, signal, 1_000, report);
    case 'heartbeats':
      return flood(attack, signal, 50, () => emptyEntries);
    default: {
      const bytes = floodOf(attack.attack);
      let made = 0;
      await paced(floodPerSecond, signal, () => {
        if (write(attack, bytes, 1_000)) made += 1;
      });
      return made;
    }
  }
}

/** 100,000 a minute; what the machine did not manage in time is made up for later. */
const floodPerSecond = 1_700;

function floodOf(flood: FloodKind): Buffer {
  const times = (count: number, part: (index: number) => Buffer): Buffer =>
    Buffer.concat([opening, ...Array.from({ length: count }, (_, index) => part(index))]);
  const stream = (index: number): number => 2 * index + 1;
  const call = (index: number, more: Readonly<Record<string, string>>, flags = endHeaders): Buffer => {
    const list = headerList({ ...openSessionHeaders, ...more });
    const pieces = Array.from({ length: Math.ceil(list.length / frameMax) }, (_, piece) =>
      frame(
        piece === 0 ? FrameType.headers : FrameType.continuation,
        (piece + 1) * frameMax >= list.length ? flags : 0,
        stream(index),
        list.subarray(piece * frameMax, (piece + 1) * frameMax),
      ),
    );
    return Buffer.concat(pieces);
  };
  switch (flood) {
    case 'header_lists':
      return times(4, (index) => call(index, { x: 'v'.repeat(56_000) }));
    case 'allowed_headers':
      return times(4, (index) => call(index, { x: 'v'.repeat(7_500) }));
    case 'settings_frames':
      return times(4_000, () => frame(FrameType.settings, 0, 0, Buffer.from([0, 4, 0, 0, 255, 255])));
    case 'ping_frames':
      return times(4_000, () => frame(FrameType.ping, 0, 0, Buffer.alloc(8)));
    case 'rapid_resets':
      return times(600, (index) => Buffer.concat([call(index, {}), rstStream(stream(index))]));
    case 'empty_frames': {
      const data = Buffer.concat(Array.from({ length: 3_000 }, () => frame(FrameType.data, 0, 1)));
      const more = Buffer.concat(Array.from({ length: 3_000 }, () => frame(FrameType.continuation, 0, 3)));
      return times(1, () => Buffer.concat([call(0, {}), data, call(1, {}, 0), more]));
    }
    case 'priority_frames':
      return times(4_000, (index) => frame(FrameType.priority, 0, stream(index), Buffer.from([0, 0, 0, 0, 16])));
    case 'half_requests':
      return times(1, () => Buffer.concat([call(0, {}), ...halfMessage]));
    default:
      return flood satisfies never;
  }
}

const frameMax = 16_384;
/** 60,000 bytes of a message of 66,000. */
const halfMessage = Array.from({ length: 4 }, (_, index) => {
  const piece = Buffer.alloc(15_000);
  if (index === 0) piece.writeUInt32BE(66_000, 1);
  return frame(FrameType.data, 0, 1, piece);
});

/** Calls `act` `perSecond` times a second until the signal aborts. */
async function paced(perSecond: number, signal: AbortSignal, act: () => void): Promise<number> {
  const began = performance.now();
  let sent = 0;
  while (!signal.aborted) {
    for (; sent < ((performance.now() - began) / 1000) * perSecond; sent += 1) act();
    await sleep(5, signal);
  }
  for (const socket of open) socket.destroy();
  return sent;
}

const open = new Set<Socket>();

/** @returns false if too many are open */
function write({ host, port }: StartAttack, bytes: Buffer, lifeMs: number): boolean {
  if (open.size >= 2_000) return false;
  const socket = createConnection({ host, port, localAddress: strangersAddress });
  open.add(socket);
  socket.on('error', () => undefined);
  socket.once('close', () => open.delete(socket));
  socket.setTimeout(lifeMs, () => socket.destroy());
  socket.resume();
  socket.write(bytes);
  return true;
}

/** OpenSession requests of 16 KiB that do not parse, 1.8 MB a second, four at once on each connection. */
async function malformedOpens({ host, port }: StartAttack, signal: AbortSignal): Promise<number> {
  const body = Buffer.alloc(5 + 16_384, 0xff);
  body.writeUInt8(0, 0);
  body.writeUInt32BE(16_384, 1);
  let session: ClientHttp2Session | undefined;
  let inFlight = 0;
  const connection = (): ClientHttp2Session => {
    if (session !== undefined && !session.closed && !session.destroyed) return session;
    inFlight = 0;
    session = connectHttp2(`http://${host}:${port}`, {
      createConnection: () => createConnection({ host, port, localAddress: strangersAddress }),
    });
    session.on('error', () => undefined);
    return session;
  };
  const sent = await paced(110, signal, () => {
    const current = connection();
    if (inFlight >= 4) return;
    const call = current.request({
      ':method': 'POST',
      ':path': '/svc.control.v1.SecureAgentService/OpenSession',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    inFlight += 1;
    call.on('error', () => undefined);
    call.once('close', () => {
      if (current === session) inFlight -= 1;
    });
    call.resume();
    call.end(body);
  });
  session?.destroy();
  return sent;
}

/**
 * Offers with the node's key, on one connection: the few that its budget lets through are dropped. At most 16 at once.
 * @returns how many were refused
 */
async function refusedOffers(attack: StartAttack, signal: AbortSignal): Promise<number> {
  const client = controlClient(attack);
  let [inFlight, refused] = [0, 0];
  setMaxListeners(0, signal);
  await paced(offersPerSecond, signal, () => {
    if (inFlight >= 16) return;
    inFlight += 1;
    void client.open(signal).then((opened) => {
      inFlight -= 1;
      if (opened.ok) opened.value.discard();
      else if (!signal.aborted) refused += 1;
    });
  });
  client.close();
  return refused;
}

/** Sessions one after the other, each with a hello as large as a hello may be. */
async function helloLoop(attack: StartAttack, signal: AbortSignal): Promise<number> {
  let sessions = 0;
  while (!signal.aborted) {
    const connected = await connect(attack, signal);
    if (connected === undefined) {
      await sleep(20, signal);
      continue;
    }
    sessions += 1;
    const detectedAddresses = Array.from({ length: 64 }, (_, n) => `${sessions}-${n}-`.padEnd(1_024, 'x'));
    connected.stream.send(hello({ detectedAddresses }));
    await connected.stream.close({ reason: SessionCloseReason.NORMAL, message: '', retryAfterMs: 0 }, 500);
    connected.end();
  }
  return sessions;
}

/** One session that sends `perSecond` messages a second, and the next one when it ends. */
async function flood(
  attack: StartAttack,
  signal: AbortSignal,
  perSecond: number,
  message: (index: number, snapshot: RuntimeConfigSnapshot) => AgentMessage,
): Promise<number> {
  let sent = 0;
  while (!signal.aborted) {
    const connected = await connect(attack, signal);
    if (connected === undefined) {
      await sleep(100, signal);
      continue;
    }
    const { stream } = connected;
    stream.send(hello());
    stream.send({ $case: 'configRequest', value: { nodeId: '', configVersion: 0n, checksum: Buffer.alloc(0) } });
    const ended = new AbortController();
    void stream.ended.then(() => ended.abort());
    const snapshot = await Promise.race([connected.snapshot, stream.ended.then(() => undefined)]);
    if (snapshot !== undefined) {
      await paced(perSecond, AbortSignal.any([signal, ended.signal]), () => {
        stream.send(message(sent, snapshot));
        sent += 1;
      });
    }
    connected.end();
  }
  return sent;
}

interface Connected {
  readonly stream: ControlStream;
  /** The first one received. */
  readonly snapshot: Promise<RuntimeConfigSnapshot>;
  end(): void;
}

function controlClient({ host, port, nodeId, controlPsk }: StartAttack): ControlClient {
  const keys = agentKeysFrom(controlPsk);
  if (!keys.ok) throw new Error(keys.error);
  return createControlClient({
    endpoint: { host, port },
    nodeId,
    keys: keys.value,
    agentVersion: 'attacker/1',
    clock: systemClock,
    offset: { milliseconds: 0 },
  });
}

async function connect(attack: StartAttack, signal: AbortSignal): Promise<Connected | undefined> {
  const client = controlClient(attack);
  const opened = await client.open(signal);
  if (!opened.ok) {
    client.close();
    return undefined;
  }
  let take: (snapshot: RuntimeConfigSnapshot) => void = () => undefined;
  const snapshot = new Promise<RuntimeConfigSnapshot>((resolve) => {
    take = resolve;
  });
  const stream = opened.value.attach((message) => {
    if (message.$case === 'configUpdate' && message.value.update?.$case === 'snapshot') {
      take(message.value.update.value);
    }
  });
  return {
    stream,
    snapshot,
    end() {
      stream.cut('the attack ends');
      client.close();
    },
  };
}

function hello(partial: Partial<AgentHello> = {}): AgentMessage {
  return { $case: 'hello', value: AgentHello.fromPartial({ agentVersion: 'attacker/1', ...partial }) };
}

/** Applied and rejected in turn, with different errors each time. */
function report(index: number, { generation, checksum }: RuntimeConfigSnapshot): AgentMessage {
  const rejected = index % 2 === 0;
  const message = `${index} `.padEnd(3_900, 'x');
  return {
    $case: 'applyReport',
    value: ConfigApplyReport.fromPartial({
      generation,
      checksum,
      status: rejected ? ConfigApplyStatus.REJECTED : ConfigApplyStatus.APPLIED,
      errors: rejected ? [{ resourceType: 'l4_chain', resourceId: '', path: 'hops[0]', message }] : [],
    }),
  };
}

const emptyEntries: AgentMessage = {
  $case: 'heartbeat',
  value: HeartbeatRequest.fromPartial({ linkMetrics: Array.from({ length: 16_384 }, () => ({})) }),
};
