/**
 * Writes an archive of a whole installation: its log, in order. Writes to `<path>.part` and renames it when complete;
 * an interrupted export continues after its last complete block. Only reads, so the service may keep running. Secrets
 * stay sealed. Foreign events are left out in streams whose commands do not refer to the previous one.
 */
import { open, rename, stat, truncate, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { chainedStreams, type RecordedEvent } from '../../kernel/event.js';
import { syncFolder, systemErrorCode } from '../../kernel/files.js';
import { dataFormat } from '../../kernel/release.js';
import type { LogReader, ResumePoint, Retention } from '../event-store.js';
import { readWholeLog } from '../follow.js';
import {
  ArchiveDamagedError,
  archiveFormat,
  archiveBounds,
  blockLine,
  chainStart,
  encodeItem,
  endLine,
  nextLink,
  type ArchiveHeader,
  type ArchiveItem,
  type ArchiveTotals,
  type Chain,
} from './format.js';
import { createLogCheck, type LogCheck, type LogCheckOptions, type LogSummary } from './log-check.js';
import { readArchive } from './read-archive.js';

/** The scope of an archive. */
export interface ArchiveScope {
  readonly streams: readonly string[];
  readonly retentions: readonly { readonly stream: string; readonly retention: Retention }[];
}

export interface ExportOptions extends ArchiveScope {
  readonly path: string;
  readonly eventStore: Pick<LogReader, 'subscribe'>;
  readonly installationId: string | null;
  /** See `ArchiveHeader`; `eventStore` leaves out everything after it. */
  readonly upTo: string | null;
  readonly archiveId: string;
  /** RFC 3339. */
  readonly exportedAt: string;
  readonly check: LogCheckOptions;
  readonly signal: AbortSignal;
  /** @param position of the last exported event in its log */
  onProgress(events: number, position: number): void;
}

export interface ExportReport {
  readonly totals: ArchiveTotals;
  readonly log: LogSummary;
  /** The faults of the exported log. The archive contains them unchanged. */
  readonly problems: readonly string[];
  /** Events written by an earlier, interrupted export. */
  readonly continued: number;
}

/** The export cannot start; the message is one sentence for the operator. */
class ExportRefusedError extends Error {}

interface StartState {
  readonly chain: Chain;
  /** The size of the file. */
  readonly bytes: number;
  readonly log: LogCheck;
  readonly point: ResumePoint | 'start';
}

/**
 * @returns undefined when the signal ended it; running it again continues
 * @throws ExportRefusedError, BrokenLogError, ServiceError `unavailable`, the file system's errors
 */
export async function exportLog(options: ExportOptions): Promise<ExportReport | undefined> {
  const { path } = options;
  if (await exists(path)) throw new ExportRefusedError(`${path} exists already: name a file that does not`);
  const part = `${path}.part`;
  const start = await continued(part, options);
  const { log } = start;
  const eventsBefore = log.summary().events;
  const file = await open(part, 'a', 0o600);
  try {
    const write = createAppender(file, part, start.bytes);
    const blocks = createBlocks(write, start.chain);
    if (start.point === 'start') {
      await blocks.add(headerOf(options));
      for (const { stream, retention } of options.retentions)
        await blocks.add({ kind: 'retention', stream, retention });
      await blocks.close();
    }
    let events = eventsBefore;
    const passesOver = (stream: string): boolean => !chainedStreams.includes(stream);
    for await (const commands of readWholeLog(options.eventStore, { ...options, after: start.point, passesOver })) {
      for (const command of commands) {
        for (const event of command.events) {
          log.add(event);
          await blocks.add({ kind: 'event', event });
          events += 1;
        }
        await blocks.closeIfFull();
        options.onProgress(events, command.events.at(-1)?.position ?? 0);
        if (options.signal.aborted) break;
      }
      if (options.signal.aborted) break;
    }
    log.end();
    await blocks.close();
    if (options.signal.aborted) return undefined;
    const summary = log.summary();
    const totals: ArchiveTotals = {
      events: summary.events,
      commands: summary.commands,
      last_position: summary.lastPosition,
      content_sha256: summary.contentSha256,
    };
    await write(endLine(blocks.chain(), totals));
    await file.sync();
    // Nothing of another export may follow the end.
    await write('');
    await rename(part, path);
    await syncFolder(dirname(path));
    return { totals, log: summary, problems: log.problems, continued: eventsBefore };
  } finally {
    await file.close();
  }
}

const headerOf = ({ archiveId, installationId, upTo, exportedAt }: ExportOptions): ArchiveHeader => ({
  kind: 'header',
  format: archiveFormat,
  version: dataFormat,
  archive_id: archiveId,
  installation_id: installationId,
  up_to: upTo,
  exported_at: exportedAt,
});

/** Appends to the file; refuses if it is not as the last append left it, because two exports to one path would mix. */
function createAppender(file: FileHandle, path: string, size: number): (text: string) => Promise<void> {
  let written = size;
  return async (text) => {
    if ((await file.stat()).size !== written) {
      throw new ExportRefusedError(`another export writes to ${path}: wait for it, or name another file`);
    }
    await file.writeFile(text);
    written += Buffer.byteLength(text);
  };
}

function createBlocks(write: (text: string) => Promise<void>, start: Chain) {
  let chain = start;
  let lines: string[] = [];
  let bytes = 0;
  const close = async (): Promise<void> => {
    if (lines.length === 0) return;
    chain = nextLink(chain, lines);
    await write(`${lines.join('')}${blockLine(chain, lines.length)}`);
    [lines, bytes] = [[], 0];
  };
  return {
    async add(item: ArchiveItem): Promise<void> {
      const line = encodeItem(item);
      lines.push(line);
      bytes += line.length;
    },
    /** Ends the block if it is large enough. Call it only between two commands. */
    async closeIfFull(): Promise<void> {
      if (lines.length >= archiveBounds.blockLines || bytes >= archiveBounds.blockBytes) await close();
    },
    close,
    chain: (): Chain => chain,
  };
}

/** The state of an interrupted export of this installation, after removing an incomplete block. */
async function continued(part: string, options: ExportOptions): Promise<StartState> {
  const fresh = (): StartState => ({
    chain: chainStart,
    bytes: 0,
    log: createLogCheck(options.check),
    point: 'start',
  });
  if (!(await exists(part))) return fresh();
  const log = createLogCheck(options.check);
  let chain = chainStart;
  let whole = 0;
  let last: RecordedEvent | undefined;
  try {
    for await (const block of readArchive(part)) {
      if (block.kind === 'end') break;
      for (const item of block.items) {
        if (
          item.kind === 'header' &&
          (item.installation_id !== options.installationId || item.up_to !== options.upTo)
        ) {
          throw new ExportRefusedError(
            `${part} is an unfinished export of another installation, or has another end: delete it or name another file`,
          );
        }
        if (item.kind !== 'event') continue;
        log.add(item.event);
        last = item.event;
      }
      [chain, whole] = [block.chain, block.bytes];
    }
  } catch (error) {
    // The file ends or is damaged here; the export continues from this point.
    if (!(error instanceof ArchiveDamagedError)) throw error;
  }
  await truncate(part, last === undefined ? 0 : whole);
  if (last === undefined) return fresh();
  return { chain, bytes: whole, log, point: { commit: last.position, prepare: last.position } };
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false;
    throw error;
  }
}
