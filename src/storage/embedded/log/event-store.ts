/**
 * The embedded event log: the port `EventStore` on one LMDB environment. Puts the parts of this folder together and
 * turns their failures into the port's answers. Implements `docs/architecture.md#storage`.
 */
import { startLoop, yieldToEventLoop } from '../../../kernel/background.js';
import type { Clock } from '../../../kernel/clock.js';
import { errorText, ServiceError } from '../../../kernel/errors.js';
import type { ProposedEvent, RecordedEvent } from '../../../kernel/event.js';
import type { Logger } from '../../../kernel/logger.js';
import { assertAppendable, bounds } from '../../bounds.js';
import type { AppendOutcome, EventStore, ExpectedRevision, ReadOptions } from '../../event-store.js';
import { oneAtATime } from '../../one-at-a-time.js';
import { openEnvironment } from '../environment.js';
import { createGroupWriter } from '../group-writer.js';
import type { Ownership } from '../ownership.js';
import { createRecentAppends, decideAppend } from './append.js';
import { encodeEvent, decodeEvent, recordedAtOf } from './event-codec.js';
import { loadCheckpoint, saveCheckpoint } from './fold-checkpoints.js';
import {
  ensureStream,
  logDatabases,
  metaKeys,
  putStreamRecord,
  readCounters,
  type LogBatch,
  eventKey,
  readStreamRecord,
  revisionOf,
  type LogEnvironment,
  type StreamRecord,
} from './layout.js';
import { createLogTime, newestRecordedAt } from './log-time.js';
import { createStreamNames, createWakeUp, subscribeLog } from './subscription.js';
import { trimStreams } from './trim.js';
import { tuning } from '../tuning.js';

export interface EmbeddedEventStore extends EventStore {
  /** Removes expired appends, a bounded number per stream. @returns how many */
  trim(): Promise<number>;
}

function unavailable(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  return new ServiceError('unavailable', 'The event store cannot be read now.', { cause: error });
}

/** @throws ServiceError `unavailable` whatever `work` throws */
async function answered<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw unavailable(error);
  }
}

async function* translated<T>(inner: AsyncGenerator<T, void, void>): AsyncGenerator<T, void, void> {
  try {
    yield* inner;
  } catch (error) {
    throw unavailable(error);
  }
}

async function* eventsOf(slices: AsyncIterable<readonly RecordedEvent[]>): AsyncGenerator<RecordedEvent, void, void> {
  for await (const slice of slices) for (const event of slice) yield event;
}

/**
 * Opens the log in the folder `path`.
 * @throws the library's error when its files cannot be opened
 */
export function openEventStore(path: string, ownership: Ownership, clock: Clock, logger: Logger): EmbeddedEventStore {
  const environment = openEnvironment({ path, databases: logDatabases, mixed: false, ownership, logger });
  const wakeUp = createWakeUp();
  const writer = createGroupWriter(environment, wakeUp.notify);
  const recent = createRecentAppends();
  const nameOf = createStreamNames(environment);
  const saving = oneAtATime<string>();
  const time = createLogTime(environment, clock);
  let closing: Promise<void> | undefined;

  /** Runs writes other than appends. @throws ServiceError `unavailable` unless they became durable */
  async function run<T>(operation: (batch: LogBatch) => T): Promise<T> {
    const written = await writer.run(operation);
    if (written.kind === 'durable') return written.value;
    throw new ServiceError('unavailable', `The event store cannot be written now: ${written.cause}.`);
  }

  async function trim(signal: AbortSignal): Promise<number> {
    await run(time.save);
    return trimStreams(environment, run, time.now, signal);
  }

  const trimmer = startLoop(
    tuning.trimEveryMs,
    async (signal) => {
      const removed = await trim(signal);
      if (removed > 0) logger.debug({ removed }, 'expired appends removed');
    },
    (error) => logger.warn({ cause: errorText(error) }, 'expired events could not be removed'),
  );

  async function append(
    stream: string,
    expected: ExpectedRevision,
    events: readonly ProposedEvent[],
  ): Promise<AppendOutcome> {
    const encoded = events.map(encodeEvent);
    assertAppendable(
      stream,
      encoded.map(({ bytes }) => bytes),
    );
    const written = await writer
      .run((batch) => {
        const now = clock.now();
        const decision = decideAppend(batch, recent, now, stream, expected, encoded);
        if (decision.wrote) time.recorded(now);
        return decision;
      })
      .catch((error: unknown) => ({ kind: 'not_written' as const, cause: errorText(error) }));
    switch (written.kind) {
      case 'durable':
        return written.value.outcome;
      case 'not_written':
        return { kind: 'unavailable', cause: written.cause };
      case 'unknown':
        return { kind: 'unknown', cause: written.cause };
      default: {
        const never: never = written;
        throw new Error(`unknown write outcome ${JSON.stringify(never)}`);
      }
    }
  }

  async function ping(): Promise<void> {
    if (closing !== undefined) throw new ServiceError('unavailable', 'The event store is closed.');
    if (writer.failing()) await run((batch) => batch.put('meta', metaKeys.probe, Buffer.from(`${clock.now()}`)));
    environment.probe();
  }

  return {
    append,
    read: (stream, options) => translated(eventsOf(readSlices(environment, stream, options, time.now))),
    subscribe: (options) => translated(subscribeLog({ environment, nameOf, wakeUp }, options)),
    async setRetention(stream, retention) {
      await run((batch) => {
        const record = ensureStream(batch, stream);
        putStreamRecord(batch, stream, { ...record, retention: { ...record.retention, ...retention } });
      });
    },
    loadFoldCheckpoint: (name) => answered(() => loadCheckpoint(environment, name)),
    saveFoldCheckpoint: (name, checkpoint) => saving(name, () => saveCheckpoint(environment, run, name, checkpoint)),
    starved: () => 0,
    headPosition: () => answered(() => readCounters(environment.get).position),
    time: () =>
      answered(() => {
        const at = newestRecordedAt(environment);
        return at === undefined ? undefined : { kind: 'not_before', at, measured: time.now() };
      }),
    ping: () => answered(ping),
    trim: () => trim(new AbortController().signal),
    close() {
      closing ??= (async () => {
        await trimmer.close();
        wakeUp.close();
        await writer.close();
        await environment.close();
      })();
      return closing;
    },
  };
}

/** The revisions that a read covers: from `from`, inclusive, to `to`, exclusive, in either direction. */
interface Window {
  readonly from: number;
  readonly to: number;
}

function visibleWindow(record: StreamRecord, options: ReadOptions): Window {
  const { maxCount } = record.retention;
  const oldest = maxCount === undefined ? 0 : Math.max(0, record.head - maxCount + 1);
  const next = record.head + 1;
  if (options.direction === 'forward') {
    const from = typeof options.from === 'number' ? options.from : 0;
    return { from: Math.max(from, oldest), to: next };
  }
  const from = typeof options.from === 'number' ? options.from : record.head;
  return { from: oldest, to: Math.min(from + 1, next) };
}

/** Yields slices of decoded events, which needs far fewer async steps than one event at a time. */
async function* readSlices(
  environment: LogEnvironment,
  stream: string,
  options: ReadOptions,
  now: () => number,
): AsyncGenerator<readonly RecordedEvent[], void, void> {
  const record = readStreamRecord(environment.get, stream);
  if (record === undefined) return;
  let { from, to } = visibleWindow(record, options);
  const reverse = options.direction === 'backward';
  const { maxAgeSeconds } = record.retention;
  const since = maxAgeSeconds === undefined ? 0 : now() - maxAgeSeconds * 1000;
  let wanted = options.maxCount;
  while (wanted > 0 && from < to) {
    const slice = environment.texts('events', {
      from: eventKey(record.number, from),
      to: eventKey(record.number, to),
      reverse,
      limit: Math.min(wanted, tuning.sliceEntries),
      maxBytes: bounds.itemBytes,
    });
    if (slice.length === 0) return;
    const events: RecordedEvent[] = [];
    for (const { key, text } of slice) {
      if (since > 0 && recordedAtOf(text) < since) continue;
      events.push(decodeEvent(text, stream, revisionOf(key)));
    }
    wanted -= events.length;
    if (events.length > 0) yield events;
    const last = slice.at(-1);
    if (last === undefined) return;
    if (reverse) to = revisionOf(last.key);
    else from = revisionOf(last.key) + 1;
    if (wanted > 0 && from < to) await yieldToEventLoop();
  }
}
