/**
 * The embedded event log: the port `EventStore` on one LMDB environment. Wires the parts of this folder together and
 * turns their failures into the port's answers. Implements `docs/architecture.md#storage`.
 */
import { startLoop } from '../../../kernel/background.js';
import type { Clock } from '../../../kernel/clock.js';
import { errorText, ServiceError } from '../../../kernel/errors.js';
import type { ProposedEvent } from '../../../kernel/event.js';
import type { Logger } from '../../../kernel/logger.js';
import { assertAppendable } from '../../bounds.js';
import type { AppendOutcome, EventStore, ExpectedRevision } from '../../event-store.js';
import { notWritten } from '../../store-access.js';
import { openEnvironment } from '../environment.js';
import { createGroupWriter } from '../group-writer.js';
import type { Ownership } from '../ownership.js';
import { createRecentAppends, decideAppend } from './append.js';
import { encodeEvent } from './event-codec.js';
import { loadCheckpoint, saveCheckpoint } from './fold-checkpoints.js';
import { ensureStream, logDatabases, metaKeys, putStreamRecord, type LogBatch } from './layout.js';
import { createLogTime, newestRecordedAt, type LogTime } from './log-time.js';
import { answered, readLog } from './reading.js';
import { createWakeUp } from './subscription.js';
import { trimStreams } from './trim.js';
import { tuning } from '../tuning.js';

export interface EmbeddedEventStore extends EventStore {
  /** Removes expired appends, a bounded number per stream. @returns how many */
  trim(): Promise<number>;
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
  let time: LogTime;
  try {
    time = createLogTime(environment, clock);
  } catch (error) {
    void environment.close();
    throw error;
  }
  let closing: Promise<void> | undefined;

  /** Runs writes other than appends. @throws ServiceError `unavailable` unless they became durable */
  async function run<T>(operation: (batch: LogBatch) => T): Promise<T> {
    const written = await writer.run(operation);
    if (written.kind === 'durable') return written.value;
    throw notWritten('event store', written.cause);
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
    if (written.kind === 'durable') return written.value.outcome;
    return { kind: written.kind === 'unknown' ? 'unknown' : 'unavailable', cause: written.cause };
  }

  async function ping(): Promise<void> {
    if (closing !== undefined) throw new ServiceError('unavailable', 'The event store is closed.');
    if (writer.failing()) await run((batch) => batch.put('meta', metaKeys.probe, Buffer.from(`${clock.now()}`)));
    environment.probe();
  }

  return {
    append,
    ...readLog({ environment, now: time.now, wakeUp }),
    async setRetention(stream, retention) {
      await run((batch) => {
        const record = ensureStream(batch, stream);
        putStreamRecord(batch, stream, { ...record, retention: { ...record.retention, ...retention } });
      });
    },
    loadFoldCheckpoint: (name) => answered(() => loadCheckpoint(environment, name)),
    saveFoldCheckpoint: (name, checkpoint) => saveCheckpoint(environment, run, name, checkpoint),
    starved: () => 0,
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
