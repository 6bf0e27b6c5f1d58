/**
 * A diagnosis as a message within its bounds: what does not fit is left out, and the report says so. Pure. Implements
 * `DiagnosticsReport` of `docs/contract/wire.md#session`.
 */
import { DiagnosticsItem, type DiagnosticsReport } from '../../gen/svc/control/v1/diagnostics.js';
import { limits } from '../../kernel/limits.js';
import { onOneLine } from '../../kernel/one-line.js';

const { diagnostics, stringBytes } = limits.agent;
/** For the log, even if the items could fill the report. */
const logBytes = 16 * 1024;
/** Of the timestamp, and of the item that says what is left out. */
const reservedBytes = 256;
/** Of an entry, before its content. */
const headerBytes = 4;
const ellipsis = Buffer.from('…');

/** Keeps items that need attention before others, and newer lines before older ones. */
export function reportOf(items: readonly DiagnosticsItem[], log: readonly string[], now: number): DiagnosticsReport {
  const cut = items.map(({ name, value, ok }) => ({ name: shortened(name), value: shortened(value), ok }));
  const lines = log.slice(-diagnostics.logLines).map(shortened);
  const itemSize = (item: DiagnosticsItem): number => headerBytes + DiagnosticsItem.encode(item).finish().length;
  const lineSize = (line: string): number => headerBytes + Buffer.byteLength(line);
  const linesAtLeast = Math.min(
    logBytes,
    lines.reduce((sum, line) => sum + lineSize(line), 0),
  );
  let room = diagnostics.bytes - reservedBytes - linesAtLeast;
  const kept = new Set<DiagnosticsItem>();
  for (const item of [...cut.filter(({ ok }) => !ok), ...cut.filter(({ ok }) => ok)]) {
    const size = itemSize(item);
    if (size > room || kept.size === diagnostics.items - 1) break;
    kept.add(item);
    room -= size;
  }
  room += linesAtLeast;
  // From the newest backwards, up to the first that does not fit.
  const from = lines.findLastIndex((line) => (room -= lineSize(line)) < 0) + 1;
  const [itemsLeft, linesLeft] = [cut.length - kept.size, from + (log.length - lines.length)];
  const leftOut = { name: 'left out', value: `${itemsLeft} items, ${linesLeft} lines of the log`, ok: itemsLeft === 0 };
  return {
    timestamp: { seconds: BigInt(Math.floor(now / 1000)), nanos: (Math.floor(now) % 1000) * 1_000_000 },
    items: [...cut.filter((item) => kept.has(item)), ...(itemsLeft + linesLeft > 0 ? [leftOut] : [])],
    log: lines.slice(from),
  };
}

/** On one line, within the limit of a text. */
function shortened(text: string): string {
  const bytes = Buffer.from(onOneLine(text));
  if (bytes.length <= stringBytes) return bytes.toString();
  let end = stringBytes - ellipsis.length;
  // Not within a character.
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return Buffer.concat([bytes.subarray(0, end), ellipsis]).toString();
}
