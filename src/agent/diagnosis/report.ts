/**
 * A diagnosis as a message within its bounds: what does not fit is left out, and the report says so. Pure. Implements
 * `DiagnosticsReport` of `docs/contract/wire.md#session`.
 */
import { DiagnosticsItem, type DiagnosticsReport } from '../../gen/svc/control/v1/diagnostics.js';
import { limits } from '../../kernel/limits.js';
import { onOneLine } from '../../kernel/one-line.js';

const { diagnostics, stringBytes } = limits.agent;
/** Reserved for the log, even if the items could fill the report. */
const logBytes = 16 * 1024;
/** Reserved for the timestamp, and for the item that says what is left out. */
const reservedBytes = 256;
/** Overhead of an entry before its content. */
const headerBytes = 4;
const ellipsis = Buffer.from('…');

/** Keeps items that need attention before others, and newer lines before older ones. */
export function reportOf(items: readonly DiagnosticsItem[], log: readonly string[], now: number): DiagnosticsReport {
  const lines = log.slice(-diagnostics.logLines).map(shortened);
  const lineSize = (line: string): number => headerBytes + Buffer.byteLength(line);
  const allLines = lines.reduce((sum, line) => sum + lineSize(line), 0);
  const forLines = Math.min(logBytes, allLines);
  let room = diagnostics.bytes - reservedBytes - forLines;
  const entries = [...items.entries()];
  const kept = new Map<number, DiagnosticsItem>();
  for (const [index, { name, value, ok }] of [
    ...entries.filter(([, one]) => !one.ok),
    ...entries.filter(([, one]) => one.ok),
  ]) {
    const item = { name: shortened(name), value: shortened(value), ok };
    room -= headerBytes + DiagnosticsItem.encode(item).finish().length;
    if (room < 0 || kept.size === diagnostics.items - 1) break;
    kept.set(index, item);
  }
  room = Math.max(0, room) + forLines;
  // From the newest backwards, up to the first that does not fit.
  const from = lines.findLastIndex((line) => (room -= lineSize(line)) < 0) + 1;
  const [itemsLeft, linesLeft] = [items.length - kept.size, log.length - lines.length + from];
  const leftOut = { name: 'left out', value: `${itemsLeft} items, ${linesLeft} lines of the log`, ok: itemsLeft === 0 };
  const inOrder = [...kept].toSorted(([a], [b]) => a - b).map(([, item]) => item);
  return {
    timestamp: { seconds: BigInt(Math.floor(now / 1000)), nanos: (Math.floor(now) % 1000) * 1_000_000 },
    items: itemsLeft + linesLeft > 0 ? [...inOrder, leftOut] : inOrder,
    log: lines.slice(from),
  };
}

/** On one line, within the limit of a text. */
function shortened(text: string): string {
  const bytes = Buffer.from(onOneLine(text));
  if (bytes.length <= stringBytes) return bytes.toString();
  let end = stringBytes - ellipsis.length;
  // Do not cut within a character.
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return Buffer.concat([bytes.subarray(0, end), ellipsis]).toString();
}
