/**
 * The cost of readers of the event feed: a thousand idle streams while no command runs, in memory and processor time; then 900
 * streams whose filters match nothing and 100 that get everything, of 63 users from several addresses, at 500 commands a
 * second; and the same commands without streams.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { createRestClient } from '../scripts/stack/rest-client.js';
import { collectable } from '../scripts/stack/service.js';
import { startChild, type Child } from './child.js';
import { rounded, sharedClock, spread, type Figure, type Report } from './figures.js';
import { warmUpMs } from './http-caller.js';
import type { BenchOptions } from './options.js';
import type { Readers, ReadSoFar } from './processes/event-readers.js';
import { memoryOf, processorSeconds, residentBytes, withService, type BenchService } from './stack.js';

const users = 63;
const streams = { idle: 900, reading: 100 };
const callers = 32;
const commandsPerSecond = 500;
const password = 'a password of the benchmark';

export async function events({ quick }: BenchOptions): Promise<Report> {
  const seconds = quick ? 5 : 20;
  const figures = await withService({ env: collectable }, async (service): Promise<Record<string, Figure>> => {
    const tokens = await tokensOf(service);
    // Not measured: the first thousand connections also pay for what later ones share.
    await withReaders(service, tokens, 0, () => delay(1_000));
    await runCommands(service, quick ? 1 : warmUpMs / 1000);
    await delay(3_000);
    const resting = await measured(service, seconds, () => delay(seconds * 1000));
    const idle = await withReaders(service, tokens, 0, (readers) => idleFigures(service, readers, seconds));
    const without = await measured(service, seconds, () => runCommands(service, seconds));
    const reading = await withReaders(service, tokens, streams.reading, (readers) =>
      busyFigures(service, readers, seconds),
    );
    const { perSecond, answers } = without.result;
    return {
      users,
      cores_without_streams: resting.cores,
      idle,
      reading,
      commands_without_streams: {
        per_second: rounded(perSecond),
        cores: without.cores,
        answer_ms: { ...spread(answers) },
      },
    };
  });
  return { bench: 'events', figures };
}

/** Tokens of new users, each signed in from a different address. */
async function tokensOf({ admin, process }: BenchService): Promise<readonly string[]> {
  const tokens: string[] = [];
  for (let index = 0; index < users; index += 1) {
    const username = `reader-${index}`;
    await admin.call('POST', '/api/auth/users', { username, password, role: 'viewer' });
    const client = createRestClient(process.url);
    tokens.push((await client.call<{ token: string }>('POST', '/api/auth/login', { username, password })).token);
  }
  return tokens;
}

interface Before {
  readonly rss: number;
  readonly heap: number;
  readonly anonymous: number;
}

/** Opens a thousand streams, some of which get everything. */
async function withReaders<T>(
  service: BenchService,
  tokens: readonly string[],
  reading: number,
  use: (child: { readonly child: Child; readonly before: Before }) => Promise<T>,
): Promise<T> {
  const child = startChild('processes/event-readers');
  try {
    const before = await memoryNow(service);
    const readers = Array.from({ length: streams.idle + streams.reading }, (_, index) => ({
      token: tokens[index % tokens.length] ?? '',
      from: `127.0.0.${1 + (index % 8)}`,
      query: index < reading ? '?types=command' : `?resource_id=nothing-${index}`,
    }));
    await child.ask('open', { url: service.process.url, readers } satisfies Readers, 60_000);
    return await use({ child, before });
  } finally {
    await child.close();
  }
}

async function memoryNow({ process }: BenchService): Promise<Before> {
  const { rss, heap } = await memoryOf(process);
  const { anonymous } = await residentBytes(process.program().child.pid ?? 0);
  return { rss, heap, anonymous };
}

async function measured<T>(
  { process }: BenchService,
  seconds: number,
  use: () => Promise<T>,
): Promise<{ readonly result: T; readonly cores: number }> {
  const pid = process.program().child.pid ?? 0;
  const before = await processorSeconds(pid);
  const began = performance.now();
  const result = await use();
  const took = Math.max(seconds, (performance.now() - began) / 1000);
  return { result, cores: rounded(((await processorSeconds(pid)) - before) / took) };
}

async function idleFigures(
  service: BenchService,
  { before }: { readonly before: Before },
  seconds: number,
): Promise<Record<string, Figure>> {
  await delay(1_000);
  const after = await memoryNow(service);
  const { cores } = await measured(service, seconds, () => delay(seconds * 1000));
  const each = (one: keyof Before): number => rounded((after[one] - before[one]) / 1024 / 1000);
  return {
    streams: streams.idle + streams.reading,
    cores,
    kib_each: { rss: each('rss'), heap: each('heap'), anonymous: each('anonymous') },
  };
}

async function busyFigures(
  service: BenchService,
  { child }: { readonly child: Child },
  seconds: number,
): Promise<Record<string, Figure>> {
  const readersBefore = await processorSeconds(child.pid);
  const { result, cores } = await measured(service, seconds, () => runCommands(service, seconds));
  const readersSeconds = (await processorSeconds(child.pid)) - readersBefore;
  await delay(1_000);
  const { bytes, counts, outOfOrder, ended, delays } = await child.ask<ReadSoFar>('result');
  const [first, ...others] = bytes.slice(0, streams.reading);
  const alike = others.filter(({ length, checksum }) => length === first?.length && checksum === first.checksum).length;
  return {
    idle: streams.idle,
    reading: streams.reading,
    commands: result.answers.length,
    commands_per_second: rounded(result.perSecond),
    // Of the watched readers only; those whose filters match nothing come last.
    events_of_a_reader: Math.min(...counts.filter((count) => count > 0)),
    readers_with_the_same_bytes: alike + 1,
    cores_of_the_readers: rounded(readersSeconds / seconds),
    events_out_of_order: outOfOrder,
    streams_ended: ended,
    cores,
    answer_ms: { ...spread(result.answers) },
    command_to_reader_ms: { ...spread(delays) },
  };
}

let made = 0;

/** Creates upstreams at a steady rate, each named after its sending time. */
async function runCommands(
  service: BenchService,
  seconds: number,
): Promise<{ readonly perSecond: number; readonly answers: readonly number[] }> {
  const writers = await service.callers(callers);
  const answers: number[] = [];
  const began = performance.now();
  const total = Math.round(seconds * commandsPerSecond);
  let next = 0;
  await Promise.all(
    writers.map(async (writer) => {
      for (let index = next++; index < total; index = next++) {
        const wait = began + (index * 1000) / commandsPerSecond - performance.now();
        if (wait > 0) await delay(wait);
        const sentAt = sharedClock();
        const name = `e-${sentAt.toFixed(3)}-${(made += 1)}`;
        const body = JSON.stringify({ name, endpoint: '192.0.2.1:80' });
        const answer = await writer.send('POST', '/api/l4-upstreams', body);
        if (answer.status !== 201) throw new Error(`a command was answered ${answer.status}: ${answer.body}`);
        answers.push(sharedClock() - sentAt);
      }
    }),
  );
  for (const writer of writers) writer.close();
  return { perSecond: (answers.length * 1000) / (performance.now() - began), answers };
}
