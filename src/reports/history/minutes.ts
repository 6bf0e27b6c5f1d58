/**
 * The last hour of history in points of a minute, in memory only. Each resource has a number, and each minute has one table with a
 * row for each number, so that an hour of a resource costs 840 bytes. Implements decision 571.
 */
import type { Clock } from '../../kernel/clock.js';
import { add, fleetSeries, minuteMs, minutesKeptMs, type Growth, type Point, type Points } from './points.js';

const kept = minutesKeptMs / minuteMs;

export interface Minutes {
  /** When recording began, milliseconds since the epoch. */
  readonly since: number;
  /** Adds to the current minute, and `online_ms` to the one of `at`, if that is kept. Round trips are left out. */
  count(id: string, at: number, growth: Growth): void;
  /** Sets the round trip of the current minute. @param us microseconds */
  roundTrip(id: string, us: number): void;
  /** By minutes since the epoch. */
  read(id: string): Points;
}

/** The columns of a minute that is over, except the time online, and their widths in bytes; see `shortened`. */
const columns = { bytes_in: 3, bytes_out: 3, sessions: 2, errors: 2, rtt: 2 } as const;
const names = Object.keys(columns) as readonly (keyof typeof columns)[];
const widths = Object.values(columns);
const rowBytes = widths.reduce<number>((sum, bytes) => sum + bytes, 0);
const rttColumn = names.indexOf('rtt');
/** Round trips are kept in units of 10 µs. */
const rttUnit = 10;

interface Minute {
  /** The values of each row while the minute lasts; afterwards `packed` has them, without rows that counted nothing. */
  exact: Float64Array | undefined;
  packed: Buffer;
  /** Milliseconds of each row. */
  online: Uint16Array;
}

const nothing = Buffer.alloc(0);

const emptyMinute = (rows: number, isCurrent: boolean): Minute => ({
  exact: isCurrent ? new Float64Array(rows * names.length) : undefined,
  packed: nothing,
  online: new Uint16Array(rows),
});

export function keepMinutes(clock: Pick<Clock, 'now'>): Minutes {
  const rows = new Map<string, number>();
  const free: number[] = [];
  /** The last minute in which each row was counted. */
  const counted: number[] = [];
  const minutes = new Map<number, Minute>();
  /** The sums over all nodes, which are too large for a row. */
  const fleet = new Map<number, Point>();
  let last = Math.floor(clock.now() / minuteMs);

  /** Frees the rows of resources not counted for an hour, of which no point is left. */
  function freeRows(): void {
    for (const [id, row] of rows) {
      if ((counted[row] ?? 0) > last - kept) continue;
      rows.delete(id);
      free.push(row);
    }
  }

  /** The current minute; packs those that are over, and forgets old ones. */
  function current(): Minute {
    const now = Math.floor(clock.now() / minuteMs);
    // The clock was set back by more than is tolerated, so the times of the points are worthless.
    if (now < last - 1) for (const numbers of [minutes, fleet]) numbers.clear();
    if (now > last || now < last - 1) {
      for (const minute of minutes.values()) pack(minute, counted.length);
      for (let minute = Math.max(last + 1, now - kept + 1); minute < now; minute += 1) {
        minutes.set(minute, emptyMinute(counted.length, false));
      }
      last = now;
      for (const numbers of [minutes, fleet]) {
        for (const minute of numbers.keys()) if (minute <= now - kept) numbers.delete(minute);
      }
      freeRows();
    }
    const minute = minutes.get(last) ?? emptyMinute(counted.length, true);
    minutes.set(last, minute);
    return minute;
  }

  function rowOf(id: string, minute: Minute): number {
    let row = rows.get(id);
    if (row === undefined) rows.set(id, (row = free.pop() ?? counted.length));
    counted[row] = last;
    if (row >= minute.online.length) grow(minute, Math.ceil((row + 1) * 1.25));
    return row;
  }

  return {
    since: clock.now(),
    count(id, at, growth) {
      const minute = current();
      if (id === fleetSeries) {
        const { rtt_us: _us, rtts: _measured, ...more } = growth;
        if (Math.floor(at / minuteMs) > last - kept) add(fleet, Math.floor(at / minuteMs), more);
        return;
      }
      const row = rowOf(id, minute);
      const { exact } = minute;
      for (const [column, name] of names.entries()) {
        const more = name === 'rtt' ? undefined : growth[name];
        if (exact === undefined || more === undefined) continue;
        const place = row * names.length + column;
        exact[place] = (exact[place] ?? 0) + more;
      }
      const online = minutes.get(Math.floor(at / minuteMs))?.online;
      if (growth.online_ms !== undefined && online !== undefined && row < online.length) {
        online[row] = Math.min((online[row] ?? 0) + growth.online_ms, minuteMs);
      }
    },
    roundTrip(id, us) {
      const minute = current();
      if (id === fleetSeries) {
        add(fleet, last, {});
        const point = fleet.get(last);
        if (point !== undefined) Object.assign(point, { rtt_us: us, rtts: 1 });
        return;
      }
      const row = rowOf(id, minute);
      if (minute.exact !== undefined) minute.exact[row * names.length + rttColumn] = Math.max(rttUnit, us);
    },
    read(id) {
      current();
      if (id === fleetSeries) return fleet;
      const points = new Map<number, Point>();
      const row = rows.get(id);
      if (row === undefined) return points;
      for (const [number, minute] of minutes) {
        const point = pointOf(minute, row);
        if (point !== undefined) points.set(number, point);
      }
      return points;
    },
  };
}

/** Undefined where nothing was counted. */
function pointOf(minute: Minute, row: number): Point | undefined {
  if (row >= minute.online.length) return undefined;
  const [bytes_in = 0, bytes_out = 0, sessions = 0, errors = 0, rtt_us = 0] = valuesOf(minute, row);
  const online_ms = minute.online[row] ?? 0;
  if (bytes_in + bytes_out + sessions + errors + rtt_us + online_ms === 0) return undefined;
  return { bytes_in, bytes_out, sessions, errors, online_ms, rtt_us, rtts: Math.sign(rtt_us) };
}

function grow(minute: Minute, size: number): void {
  const [exact, online] = [new Float64Array(size * names.length), new Uint16Array(size)];
  if (minute.exact !== undefined) exact.set(minute.exact);
  online.set(minute.online);
  minute.exact = exact;
  minute.online = online;
}

function pack(minute: Minute, rows: number): void {
  const { exact, online } = minute;
  if (exact === undefined) return;
  const packed = Buffer.alloc(rows * rowBytes);
  for (let [row, at, value] = [0, 0, 0]; row < rows; row += 1) {
    for (const [column, bytes] of widths.entries()) {
      const whole = Math.round((exact[value] ?? 0) / (column === rttColumn ? rttUnit : 1));
      let rest = whole > 0 ? shortened(whole, 8 * bytes - exponentBits) : 0;
      for (let byte = 0; byte < bytes; byte += 1) {
        packed[at + byte] = rest;
        rest >>>= 8;
      }
      at += bytes;
      value += 1;
    }
  }
  minute.packed = packed;
  minute.exact = undefined;
  minute.online = online.slice(0, rows);
}

function valuesOf({ exact, packed }: Minute, row: number): readonly number[] {
  if (exact !== undefined) return [...exact.subarray(row * names.length, (row + 1) * names.length)];
  let at = row * rowBytes;
  if (at >= packed.length) return [];
  return names.map((name) => {
    const value = lengthened(packed.readUIntLE(at, columns[name]));
    at += columns[name];
    return name === 'rtt' ? value * rttUnit : value;
  });
}

const exponentBits = 5;

/** A number as its highest bits, followed by five bits that say how many lower bits were dropped. */
function shortened(value: number, bits: number): number {
  const most = 2 ** bits;
  let [rest, exponent] = [Math.min(value, most * 2 ** 31 - 1), 0];
  for (; rest >= most; exponent += 1) rest = Math.floor(rest / 2);
  return rest * 2 ** exponentBits + exponent;
}

const lengthened = (short: number): number => Math.floor(short / 2 ** exponentBits) * 2 ** (short % 2 ** exponentBits);
