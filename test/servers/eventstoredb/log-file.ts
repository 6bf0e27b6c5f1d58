/**
 * The log in a file: one JSON line per append, written before the answer and read at the start. Survives kill -9 of the
 * process but not a power failure, because it is not flushed. An incomplete last line was never answered and is
 * dropped.
 */
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { LogEvent, LogRecord } from './log.js';

interface StoredEvent extends Omit<LogEvent, 'data' | 'metadata'> {
  readonly data: string;
  readonly metadata: string;
}
type StoredRecord =
  | { readonly kind: 'events'; readonly events: readonly StoredEvent[] }
  | { readonly kind: 'empty'; readonly position: number };

export interface LogFile {
  readonly records: readonly LogRecord[];
  write(record: LogRecord): void;
  close(): void;
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

export function openLogFile(folder: string): LogFile {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, 'log.jsonl');
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  if (whole.length < text.length) truncateSync(path, Buffer.byteLength(whole));
  const records = whole
    .split('\n')
    .filter((line) => line !== '')
    .map((line): LogRecord => {
      const record = JSON.parse(line) as StoredRecord;
      if (record.kind === 'empty') return record;
      const events = record.events.map((event) => ({
        ...event,
        data: Buffer.from(event.data, 'base64'),
        metadata: Buffer.from(event.metadata, 'base64'),
      }));
      return { kind: 'events', events };
    });
  const file = openSync(path, 'a');
  return {
    records,
    write(record) {
      const stored: StoredRecord =
        record.kind === 'empty'
          ? record
          : {
              kind: 'events',
              events: record.events.map((event) => ({
                ...event,
                data: base64(event.data),
                metadata: base64(event.metadata),
              })),
            };
      writeSync(file, `${JSON.stringify(stored)}\n`);
    },
    close: () => closeSync(file),
  };
}
