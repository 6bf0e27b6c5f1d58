/** Plays a scenario of the transcripts against a server and reports differences from the real one. */
import { setTimeout as delay } from 'node:timers/promises';
import { Client, credentials, Metadata, type StatusObject } from '@grpc/grpc-js';
import * as messages from './messages.js';
import {
  differences,
  requestsOf,
  type Answer,
  type Json,
  type Labels,
  type Scenario,
  type Step,
} from './transcript.js';
import { decode, encode, type Plain, type Schema } from './wire.js';

export interface ReplayOptions {
  /** `host:port`, without TLS. */
  readonly target: string;
  /** The version whose answers are expected where versions differ. */
  readonly server: string;
  /** Silence to wait for after an answer, in milliseconds, when a step has none. */
  readonly quietMs: number;
  /** The server's time, where it does not pass by itself. */
  readonly time?: { now(): number; wait(ms: number): Promise<void> };
}

const services: Readonly<Record<string, string>> = {
  Streams: 'streams',
  ServerFeatures: 'server_features',
  Gossip: 'gossip',
};
const schemas: Readonly<Record<string, readonly [Schema, Schema]>> = {
  'Streams/Read': [messages.ReadReq, messages.ReadResp],
  'Streams/Append': [messages.AppendReq, messages.AppendResp],
  'Streams/BatchAppend': [messages.BatchAppendReq, messages.BatchAppendResp],
  'Streams/Delete': [messages.DeleteReq, messages.DeleteResp],
  'Streams/Tombstone': [messages.DeleteReq, messages.DeleteResp],
  'ServerFeatures/GetSupportedMethods': [messages.Empty, messages.SupportedMethods],
  'Gossip/Read': [messages.Empty, messages.ClusterInfo],
};

interface OpenCall {
  readonly received: Plain[];
  status: StatusObject | undefined;
  readonly ignore: Set<string>;
  write(message: Plain): void;
  end(): void;
  cancel(): void;
}

function openCall(client: Client, step: Step): OpenCall {
  const method = step.method ?? '';
  const [service = ''] = method.split('/');
  const [request, response] = schemas[method] ?? [messages.Empty, messages.Empty];
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(step.metadata ?? {})) metadata.set(key, value);
  const stream = client.makeBidiStreamRequest(
    `/event_store.client.${services[service] ?? 'none'}.${method}`,
    (plain: Plain) => encode(request, plain),
    (bytes: Buffer) => decode(response, bytes),
    metadata,
  );
  const call: OpenCall = {
    received: [],
    status: undefined,
    ignore: new Set(step.ignore ?? []),
    write: (message) => void stream.write(message),
    end: () => void stream.end(),
    cancel: () => stream.cancel(),
  };
  stream.on('data', (message: Plain) => {
    if (!Object.keys(message).some((kind) => call.ignore.has(kind))) call.received.push(message);
  });
  stream.on('status', (status: StatusObject) => {
    call.status = status;
  });
  stream.on('error', () => undefined);
  return call;
}

async function until(done: () => boolean, ms: number): Promise<void> {
  const end = Date.now() + ms;
  while (!done() && Date.now() < end) await delay(5);
}

const byCorrelation = (message: Json | Plain): string =>
  JSON.stringify((message as { correlationId?: Json }).correlationId);
const byMethod = (message: Json | Plain): string => {
  const { serviceName, methodName } = message as { serviceName?: Json; methodName?: Json };
  return `${String(serviceName)}/${String(methodName)}`;
};

/** Sorts lists of methods, which are sets. */
function ordered<T extends Json | Plain>(list: readonly T[], anyOrder: boolean): T[] {
  const by = (key: (one: T) => string) => (a: T, b: T) => (key(a) < key(b) ? -1 : 1);
  const inside = list.map((one) => {
    const { methods } = one as { methods?: T[] };
    return methods === undefined ? one : { ...(one as object), methods: methods.toSorted(by(byMethod)) };
  }) as T[];
  return anyOrder ? inside.toSorted(by(byCorrelation)) : inside;
}

/** Trailers of the web server, which change with its release. */
const ofWebServer: readonly string[] = ['content-type', 'content-length', 'date', 'server'];

export function statusDifferences(
  expected: Answer['status'],
  status: StatusObject | undefined,
  path: string,
): string[] {
  if (expected === undefined || status === undefined) {
    return expected === undefined && status === undefined ? [] : [`${path}: status ${status?.code} ${status?.details}`];
  }
  const wanted = expected.details ?? '';
  const said = status.details === 'OK' ? '' : status.details;
  const out: string[] = [];
  if (expected.code !== status.code) out.push(`${path}: code ${status.code} (${said}), not ${expected.code}`);
  if (wanted !== '<any>' && wanted !== said) out.push(`${path}: "${said}", not "${wanted}"`);
  const trailers = Object.fromEntries(
    Object.entries(status.metadata.getMap()).filter(([key]) => !ofWebServer.includes(key)),
  );
  if (
    JSON.stringify(Object.entries(trailers).toSorted()) !==
    JSON.stringify(Object.entries(expected.trailers ?? {}).toSorted())
  ) {
    out.push(`${path}: trailers ${JSON.stringify(trailers)}`);
  }
  return out;
}

/** Plays one scenario. @returns one line per difference */
export async function replay(scenario: Scenario, options: ReplayOptions): Promise<string[]> {
  const { time = { now: Date.now, wait: delay } } = options;
  const client = new Client(options.target, credentials.createInsecure());
  const labels: Labels = new Map();
  const open = new Map<string, OpenCall>();
  const out: string[] = [];
  try {
    for (const step of scenario.steps) {
      const path = `${scenario.id} ${step.n} (${step.note ?? step.do})`;
      const answer: Answer =
        step.answer ?? step.answers?.find(({ servers }) => servers?.includes(options.server)) ?? {};
      const seen = new Map(
        [...open].map(([id, call]) => [id, { call, from: call.received.length, ended: call.status }]),
      );
      const answers = perform(client, step, open, labels, time.now);
      const total = answer.recv?.length ?? 0;
      const from = (step.id === undefined ? undefined : seen.get(step.id))?.from ?? 0;
      const ownFrom = answers !== undefined && step.do !== 'call' && step.do !== 'open' ? from : 0;
      const waits = (): boolean =>
        (answers === undefined || answers.received.length - ownFrom >= total) &&
        (answer.status === undefined || answers?.status !== undefined) &&
        Object.entries(answer.live ?? {}).every(([id, live]) => {
          const before = seen.get(id);
          return (
            before !== undefined &&
            before.call.received.length - before.from >= (live.recv?.length ?? 0) &&
            (live.status === undefined || before.call.status !== undefined)
          );
        });
      if (step.do === 'wait') {
        await arrived(client);
        await time.wait(step.ms ?? 0);
      }
      // A call that the real server never ended is given no longer than an answer would take.
      const endsWithinMs = answer.status === undefined ? 10 * options.quietMs : 10_000;
      if (step.do === 'call')
        await until(() => answers?.status !== undefined, Math.min(step.timeoutMs ?? 10_000, endsWithinMs));
      await until(waits, 20_000);
      await delay(Math.min(step.quietMs ?? options.quietMs, options.quietMs));
      if (answers !== undefined && step.do !== 'cancel') {
        out.push(...compare(answer, answers, ownFrom, labels, path, step.anyOrder ?? false));
      }
      for (const [id, before] of seen) {
        if (before.call === answers || step.do === 'cancel' || !open.has(id)) continue;
        const status = before.ended === undefined ? before.call.status : undefined;
        const live = answer.live?.[id] ?? {};
        out.push(...compare(live, { ...before.call, status }, before.from, labels, `${path} live ${id}`, false));
      }
      if (step.do === 'call') answers?.cancel();
    }
  } finally {
    for (const call of open.values()) call.cancel();
    client.close();
  }
  return out;
}

/** Resolves when the server has what was sent: it answers a later call of the connection. */
async function arrived(client: Client): Promise<void> {
  const call = openCall(client, { n: 0, do: 'call', method: 'ServerFeatures/GetSupportedMethods' });
  call.write({});
  call.end();
  await until(() => call.status !== undefined, 10_000);
}

function perform(
  client: Client,
  step: Step,
  open: Map<string, OpenCall>,
  labels: Labels,
  now: () => number,
): OpenCall | undefined {
  const id = step.id ?? '';
  const requests = requestsOf(step.send ?? [], labels, now);
  switch (step.do) {
    case 'call':
    case 'open': {
      const before = open.get(id);
      if (step.do === 'open' && step.ifClosed === true && before !== undefined && before.status === undefined)
        return undefined;
      const call = openCall(client, step);
      for (const request of requests) call.write(request);
      if (step.do === 'call' || step.method === 'Streams/Read') call.end();
      if (step.do === 'open') open.set(id, call);
      return call;
    }
    case 'send':
    case 'end': {
      const call = open.get(id);
      for (const request of requests) call?.write(request);
      if (step.end === true || step.do === 'end') call?.end();
      return call;
    }
    case 'cancel':
      open.get(id)?.cancel();
      open.delete(id);
      return undefined;
    case 'wait':
      return undefined;
    default: {
      const never: never = step.do;
      throw new Error(`unknown step ${String(never)}`);
    }
  }
}

function compare(
  answer: Answer,
  call: Pick<OpenCall, 'received' | 'status'>,
  from: number,
  labels: Labels,
  path: string,
  anyOrder: boolean,
): string[] {
  const received = ordered(call.received.slice(from), anyOrder);
  const expected = ordered(answer.recv ?? [], anyOrder);
  return [...differences(expected, received, labels, path), ...statusDifferences(answer.status, call.status, path)];
}
