/** The adapter on a test server, with helpers for the adapter's tests. */
import type { Logger } from '../../../src/kernel/logger.js';
import type { EventStore, LogItem, ResumePoint } from '../../../src/storage/event-store.js';
import { openEventStoreDb } from '../../../src/storage/eventstoredb/open.js';
import { followLog } from '../../../src/storage/follow.js';
import type { Tuning } from '../../../src/storage/eventstoredb/tuning.js';
import { startEventStoreDb, type EventStoreDbServer } from '../../servers/eventstoredb/server.js';

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly fields: object;
  readonly message: string;
}

export interface Fixture {
  readonly server: EventStoreDbServer;
  readonly store: EventStore;
  readonly lines: LogLine[];
  close(): Promise<void>;
}

export function recordingLogger(lines: LogLine[]): Logger {
  const at = (level: LogLine['level']) => (fields: object, message: string) =>
    void lines.push({ level, fields, message });
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Times for tests in which a server hangs or is away. Still long enough for an answer on a busy machine. */
export const impatient = {
  appendMs: 6_000,
  appendTryMs: 2_000,
  appendRetryMs: 500,
  readPageMs: 3_000,
  readRetryMs: 500,
  confirmMs: 1_500,
  disposeMs: 500,
} as const satisfies Partial<Tuning>;

/** @param url another URL than the server's own */
export async function openFixture(
  url?: (server: EventStoreDbServer) => string,
  tuning: Partial<Tuning> = {},
): Promise<Fixture> {
  const server = await startEventStoreDb();
  const lines: LogLine[] = [];
  const store = openEventStoreDb({
    url: url?.(server) ?? server.url,
    logger: recordingLogger(lines),
    tuning,
  });
  return {
    server,
    store,
    lines,
    async close() {
      await store.close();
      await server.close();
    },
  };
}

interface Following {
  /** Kinds of the items so far. */
  readonly kinds: string[];
  /** Revisions of the events so far. */
  readonly revisions: number[];
  stop(): Promise<void>;
}

/** Follows the log. */
export function following(store: EventStore, after: ResumePoint | 'start' = 'start'): Following {
  const end = new AbortController();
  const [kinds, revisions]: [string[], number[]] = [[], []];
  const done = (async () => {
    const streams = ['svc-a', 'svc-b', 'svc-c'];
    for await (const item of followLog(store, { streams, after, signal: end.signal })) {
      kinds.push(item.kind);
      if (item.kind !== 'commands') continue;
      revisions.push(...item.commands.flatMap(({ events }) => events.map(({ revision }) => revision)));
    }
  })();
  return {
    kinds,
    revisions,
    async stop() {
      end.abort();
      await done;
    },
  };
}

/** Takes items until one matches, inclusive. */
export async function takeUntil(items: AsyncIterable<LogItem>, fits: (item: LogItem) => boolean): Promise<LogItem[]> {
  const taken: LogItem[] = [];
  for await (const item of items) {
    taken.push(item);
    if (fits(item)) break;
  }
  return taken;
}

/** Puts foreign events into the log without using the wire. */
export function writeForeign(server: EventStoreDbServer, count: number, stream = 'foreign'): void {
  const events = Array.from({ length: count }, (_, index) => ({
    id: `00000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`,
    type: 'Foreign',
    isJson: true,
    data: Buffer.from('{}'),
    metadata: new Uint8Array(),
  }));
  server.log.append(stream, { kind: 'no_stream' }, events);
}
