/**
 * The line format of a log archive, a text file that holds a whole installation and can be checked without this
 * program. JSON lines in blocks: each block ends with the running SHA-256 over everything before it, and the last line
 * has the totals, covered by the same chain. `read-archive.ts` and `export-log.ts` read and write the files.
 */
import { createHash } from 'node:crypto';
import { unreachable } from '../../kernel/errors.js';
import type { EventMetadata, RecordedEvent } from '../../kernel/event.js';
import type { JsonObject } from '../../kernel/json.js';
import type { Retention } from '../event-store.js';

export const archiveFormat = 'gateway-control-log';

/** Bounds of everything that reads or writes archives. */
export const archiveBounds = {
  /** A block of lines, with its checksum, is closed at either bound. One block is held in memory at a time. */
  blockLines: 1000,
  blockBytes: 1024 * 1024,
  /** The longest line to read: an event of the largest size, with room for escapes. */
  lineBytes: 4 * 1024 * 1024,
  /** How many problems are listed; all are counted. */
  problems: 100,
} as const;

export interface ArchiveHeader {
  readonly kind: 'header';
  readonly format: typeof archiveFormat;
  readonly version: number;
  /** Random, so that an interrupted import can be matched to its archive. */
  readonly archive_id: string;
  /** Null for a log that no service has started with. */
  readonly installation_id: string | null;
  /** `STREAM@REVISION` after which the log was cut; null for a whole log. */
  readonly up_to: string | null;
  /** RFC 3339. */
  readonly exported_at: string;
}

export interface ArchiveTotals {
  readonly events: number;
  readonly commands: number;
  /** Position of the last event in the exported store; 0 without events. */
  readonly last_position: number;
  /** Digest of the events without their positions; see `log-check.ts`. */
  readonly content_sha256: string;
}

export type ArchiveItem =
  | ArchiveHeader
  | { readonly kind: 'retention'; readonly stream: string; readonly retention: Retention }
  | { readonly kind: 'event'; readonly event: RecordedEvent };

/** The file is not an archive, is incomplete, or was altered. The message is a sentence that names the line. */
export class ArchiveDamagedError extends Error {
  constructor(line: number, reason: string) {
    super(`line ${line}: ${reason}`);
    this.name = 'ArchiveDamagedError';
  }
}

/** The line of an item, including its line break. */
export function encodeItem(item: ArchiveItem): string {
  switch (item.kind) {
    case 'header':
      return `${JSON.stringify(item)}\n`;
    case 'retention': {
      const { maxAgeSeconds, maxCount } = item.retention;
      const line = { kind: 'retention', stream: item.stream, max_age_seconds: maxAgeSeconds, max_count: maxCount };
      return `${JSON.stringify(line)}\n`;
    }
    case 'event': {
      const { stream, revision, position, id, type, data, metadata } = item.event;
      return `${JSON.stringify({ kind: 'event', stream, revision, position, id, type, data, metadata })}\n`;
    }
    default:
      return unreachable(item);
  }
}

const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/** Checks only the shape; the checksums cover the rest. @returns undefined when the line is not an item */
export function decodeItem(line: unknown): ArchiveItem | undefined {
  if (!isObject(line)) return undefined;
  switch (line['kind']) {
    case 'header':
      return line['format'] === archiveFormat && isCount(line['version']) && typeof line['archive_id'] === 'string'
        ? (line as unknown as ArchiveHeader)
        : undefined;
    case 'retention': {
      const { stream, max_age_seconds: age, max_count: count } = line;
      if (typeof stream !== 'string') return undefined;
      const retention: Retention = {
        ...(isCount(age) ? { maxAgeSeconds: age } : {}),
        ...(isCount(count) ? { maxCount: count } : {}),
      };
      return { kind: 'retention', stream, retention };
    }
    case 'event': {
      const { stream, revision, position, id, type, data, metadata } = line;
      if (typeof stream !== 'string' || typeof id !== 'string' || typeof type !== 'string') return undefined;
      if (!isCount(revision) || !isCount(position) || !isObject(data) || !isMetadata(metadata)) return undefined;
      return { kind: 'event', event: { stream, revision, position, id, type, data: data as JsonObject, metadata } };
    }
    default:
      return undefined;
  }
}

function isMetadata(value: unknown): value is EventMetadata {
  if (!isObject(value) || !isObject(value['command'])) return false;
  const { id, index, count } = value['command'];
  return typeof id === 'string' && isCount(index) && isCount(count) && isCount(value['schema_version']);
}

/** The running checksum, which covers everything before it. */
export interface Chain {
  readonly blocks: number;
  readonly sha256: string;
}

export const chainStart: Chain = { blocks: 0, sha256: '0'.repeat(64) };

/** The chain after one more block. @param lines including their line breaks */
export function nextLink(chain: Chain, lines: readonly (string | Uint8Array)[]): Chain {
  const hash = createHash('sha256').update(chain.sha256);
  for (const line of lines) hash.update(line);
  return { blocks: chain.blocks + 1, sha256: hash.digest('hex') };
}

/** The line after a block. */
export function blockLine(chain: Chain, lines: number): string {
  return `${JSON.stringify({ kind: 'block', number: chain.blocks, lines, sha256: chain.sha256 })}\n`;
}

/** The last line. */
export function endLine(chain: Chain, totals: ArchiveTotals): string {
  const end = { kind: 'end', blocks: chain.blocks, ...totals };
  const sha256 = createHash('sha256').update(chain.sha256).update(JSON.stringify(end)).digest('hex');
  return `${JSON.stringify({ ...end, sha256 })}\n`;
}

/** @returns undefined when the line has no totals */
export function decodeTotals(line: { readonly [key: string]: unknown }): ArchiveTotals | undefined {
  const { events, commands, last_position, content_sha256 } = line;
  return isCount(events) && isCount(commands) && isCount(last_position) && isString(content_sha256)
    ? { events, commands, last_position, content_sha256 }
    : undefined;
}

const isString = (value: unknown): value is string => typeof value === 'string';
