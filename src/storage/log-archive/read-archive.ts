/**
 * Reads an archive block by block. Yields a block only after verifying its checksum, so altered content is never acted
 * on. Holds one block in memory at a time. `log-check.ts` checks the events themselves.
 */
import { open, type FileHandle } from 'node:fs/promises';
import type { RecordedEvent } from '../../kernel/event.js';
import { dataFormat } from '../../kernel/release.js';
import {
  ArchiveDamagedError,
  archiveBounds,
  blockLine,
  chainStart,
  decodeItem,
  decodeTotals,
  endLine,
  nextLink,
  type ArchiveHeader,
  type ArchiveItem,
  type ArchiveTotals,
  type Chain,
} from './format.js';

export type ArchivePart =
  | {
      readonly kind: 'block';
      readonly items: readonly ArchiveItem[];
      readonly chain: Chain;
      /** Bytes of the file up to and including this block. */
      readonly bytes: number;
    }
  | { readonly kind: 'end'; readonly totals: ArchiveTotals; readonly bytes: number };

const readBytes = 256 * 1024;

/** The events of one stream, which may be anywhere in the archive. @throws like `readArchive` */
export async function* streamOfArchive(path: string, stream: string): AsyncGenerator<RecordedEvent, void, void> {
  for await (const part of readArchive(path)) {
    if (part.kind === 'end') return;
    for (const item of part.items) if (item.kind === 'event' && item.event.stream === stream) yield item.event;
  }
}

/** Lines as bytes, including their line breaks; the last line may lack one. */
async function* linesOf(file: FileHandle): AsyncGenerator<Buffer, void, void> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for (let number = 1; ;) {
    const chunk = Buffer.allocUnsafe(readBytes);
    const { bytesRead } = await file.read(chunk, 0, readBytes, null);
    if (bytesRead === 0) break;
    let from = 0;
    for (;;) {
      const lineBreak = chunk.subarray(0, bytesRead).indexOf(0x0a, from);
      const end = lineBreak === -1 ? bytesRead : lineBreak + 1;
      rest.push(chunk.subarray(from, end));
      restBytes += end - from;
      if (restBytes > archiveBounds.lineBytes) {
        throw new ArchiveDamagedError(number, `the line is longer than ${archiveBounds.lineBytes} bytes`);
      }
      if (lineBreak === -1) break;
      yield rest.length === 1 && rest[0] !== undefined ? rest[0] : Buffer.concat(rest);
      number += 1;
      rest = [];
      restBytes = 0;
      from = end;
    }
  }
  if (restBytes > 0) yield Buffer.concat(rest);
}

function parse(line: Buffer, number: number): { readonly [key: string]: unknown } {
  try {
    const value: unknown = JSON.parse(line.toString('utf8'));
    if (typeof value === 'object' && value !== null) return value as { readonly [key: string]: unknown };
  } catch {
    // Reported below.
  }
  throw new ArchiveDamagedError(number, 'not a JSON object');
}

function assertReadable(item: ArchiveItem | undefined, number: number): asserts item is ArchiveHeader {
  if (item?.kind !== 'header') throw new ArchiveDamagedError(number, 'this is not a log archive: it has no header');
  if (item.version > dataFormat) {
    throw new ArchiveDamagedError(
      number,
      `the archive has format version ${item.version}; this release reads up to ${dataFormat}`,
    );
  }
}

/**
 * Yields every block, then the end.
 * @throws ArchiveDamagedError, or the file system's error when the file cannot be read
 */
export async function* readArchive(path: string): AsyncGenerator<ArchivePart, void, void> {
  const file = await open(path, 'r');
  try {
    let chain = chainStart;
    let lines: Buffer[] = [];
    let items: ArchiveItem[] = [];
    let [bytes, blockBytes, number, ended] = [0, 0, 0, false];
    for await (const line of linesOf(file)) {
      number += 1;
      bytes += line.length;
      if (ended) throw new ArchiveDamagedError(number, 'something follows the end of the archive');
      const object = parse(line, number);
      if (object['kind'] === 'block') {
        chain = nextLink(chain, lines);
        if (line.toString('utf8') !== blockLine(chain, lines.length)) {
          throw new ArchiveDamagedError(
            number,
            `the checksum of block ${chain.blocks} (lines ${number - lines.length} to ${number - 1}) does not match: something in it was altered`,
          );
        }
        yield { kind: 'block', items, chain, bytes };
        [lines, items, blockBytes] = [[], [], 0];
        continue;
      }
      if (object['kind'] === 'end') {
        const totals = decodeTotals(object);
        if (lines.length > 0 || totals === undefined || line.toString('utf8') !== endLine(chain, totals)) {
          throw new ArchiveDamagedError(number, 'the end of the archive does not match its blocks');
        }
        ended = true;
        yield { kind: 'end', totals, bytes };
        continue;
      }
      const item = decodeItem(object);
      if (number === 1) assertReadable(item, number);
      if (item === undefined) throw new ArchiveDamagedError(number, 'not a line of a log archive');
      lines.push(line);
      items.push(item);
      blockBytes += line.length;
      // A block ends after a command, which may be as large as an append.
      if (blockBytes > archiveBounds.blockBytes + 4 * archiveBounds.lineBytes) {
        throw new ArchiveDamagedError(number, 'the block is too large: its checksum line is missing');
      }
    }
    if (!ended) {
      throw new ArchiveDamagedError(number, 'the archive ends here without its last line: the export was not finished');
    }
  } finally {
    await file.close();
  }
}
