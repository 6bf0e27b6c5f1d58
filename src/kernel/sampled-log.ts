/**
 * A log for events that strangers can trigger, or that repeat for as long as their cause lasts. No flood can fill it: it
 * writes one line a second per reason and address, with the number left out since, within a budget of bytes for all
 * lines. Lines beyond that are summed up by reason. All events are counted by reason for `/metrics`.
 */
import { addressKey } from './addresses.js';
import type { Clock } from './clock.js';
import type { LogFields, LogValue } from './logger.js';
import { createTokenBucket } from './token-bucket.js';

interface SampledEvent {
  /** One of a small fixed set, in snake_case; also the label of the counter. */
  readonly reason: string;
  /** The peer's address, if there is one; an IPv6 address counts as its /64. */
  readonly address?: string;
  /** More fields for the line; long texts are cut. Never a secret. */
  readonly [field: string]: LogValue;
}

export interface SampledLog {
  /** Counts an event and, if the limits allow, writes it with a sentence. */
  note(event: SampledEvent, message: string): void;
  /** All events by reason, including those left out. */
  counts(): ReadonlyMap<string, number>;
  /** Reports counts that no later line has reported. Runs every ten seconds. */
  flush(): void;
  /** Reports them one last time. */
  close(): void;
}

interface SampledLogOptions {
  readonly write: (fields: LogFields, message: string) => void;
  readonly clock: Clock;
}

interface LastLine {
  readonly at: number;
  leftOut: number;
  readonly reason: string;
  readonly address: string | undefined;
  readonly message: string;
}

const lineEveryMs = 1_000;
const flushEveryMs = 10_000;
/** All lines together: below 64 KiB a minute, after a burst of 16 KiB. */
const bytesPerSecond = 1_000;
const burstBytes = 16 * 1024;
/** The bytes that a logger adds to the fields: level, time, and their names. */
const bytesAroundFields = 80;
/** Only pairs of reason and address with a recent line are kept: the budget keeps them far below this bound. */
const pairsMax = 1_024;
const reasonsMax = 64;
const otherReasons = 'other';
const textChars = 256;

export function createSampledLog({ write, clock }: SampledLogOptions): SampledLog {
  /** By reason and address, the oldest line first. */
  const lines = new Map<string, LastLine>();
  const counts = new Map<string, number>();
  /** Counts by reason that no line of their pair has reported or will report. */
  const untold = new Map<string, number>();
  const bytes = createTokenBucket(bytesPerSecond, burstBytes, clock.monotonic());

  const admitted = (): boolean => bytes.wait(clock.monotonic()) === 0;
  const writeCharged = (fields: LogFields, message: string): void => {
    const length = Buffer.byteLength(JSON.stringify(fields)) + message.length + bytesAroundFields;
    bytes.take(clock.monotonic(), length);
    write(fields, message);
  };
  const leaveOut = (reason: string, number: number): void => {
    untold.set(reason, (untold.get(reason) ?? 0) + number);
  };
  const countedReason = (reason: string): string =>
    counts.has(reason) || counts.size < reasonsMax ? reason : otherReasons;

  /** Forgets pairs without a line since `before`, and reports the events they left out. */
  const tell = (before: number): void => {
    for (const [pair, { at, reason, address, leftOut, message }] of lines) {
      if (at > before) break;
      lines.delete(pair);
      if (leftOut === 0) continue;
      if (admitted()) writeCharged({ reason, address, left_out: leftOut }, message);
      else leaveOut(reason, leftOut);
    }
    if (untold.size === 0) return;
    writeCharged({ left_out: Object.fromEntries(untold) }, 'more was refused than is logged line by line');
    untold.clear();
  };
  const flush = (): void => tell(clock.monotonic() - lineEveryMs);
  const timer = setInterval(flush, flushEveryMs);
  timer.unref();

  return {
    note(event, message) {
      const reason = countedReason(event.reason);
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
      const now = clock.monotonic();
      const pair = `${reason} ${addressKey(event.address ?? '')}`;
      const last = lines.get(pair);
      if (last !== undefined && now - last.at < lineEveryMs) {
        last.leftOut += 1;
        return;
      }
      if (!admitted() || (last === undefined && lines.size >= pairsMax)) {
        if (last === undefined) leaveOut(reason, 1);
        else last.leftOut += 1;
        return;
      }
      const leftOut = last?.leftOut ?? 0;
      writeCharged({ ...cut(event), ...(leftOut === 0 ? {} : { left_out: leftOut }) }, message);
      lines.delete(pair);
      lines.set(pair, { at: now, leftOut: 0, reason, address: event.address, message });
    },
    counts: () => counts,
    flush,
    close() {
      clearInterval(timer);
      tell(clock.monotonic());
    },
  };
}

function cut(event: SampledEvent): LogFields {
  const short = (value: LogValue): LogValue =>
    typeof value === 'string' && value.length > textChars ? `${value.slice(0, textChars)}…` : value;
  return Object.fromEntries(Object.entries(event).map(([name, value]) => [name, short(value)]));
}
