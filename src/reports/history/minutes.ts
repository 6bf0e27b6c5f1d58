/**
 * The last hour of history in points of a minute, in memory only. Each resource has a number, and each minute has one table with a
 * row for each number, so that an hour of a resource costs 1,440 bytes. Implements decision 571.
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

/** The columns of a row. */
const names = ['bytes_in', 'bytes_out', 'sessions', 'errors', 'online_ms', 'rtt_us'] as const;
const [onlineColumn, rttColumn] = [names.indexOf('online_ms'), names.indexOf('rtt_us')];

/** The values of each row, exact while the minute lasts. */
type Minute = Float64Array | Float32Array;

const rowsIn = (minute: Minute): number => minute.length / names.length;

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

  /** Moves on to the current minute: shortens the one that is over, and forgets old ones. */
  function moveOn(): void {
    const now = Math.floor(clock.now() / minuteMs);
    // The clock was set back by more than is tolerated, so the times of the points are worthless.
    if (now < last - 1) for (const numbers of [minutes, fleet]) numbers.clear();
    if (now <= last && now >= last - 1) return;
    const values = counted.length * names.length;
    const over = minutes.get(last);
    if (over !== undefined) minutes.set(last, new Float32Array(over.subarray(0, values)));
    for (let minute = Math.max(last + 1, now - kept + 1); minute < now; minute += 1) {
      minutes.set(minute, new Float32Array(values));
    }
    last = now;
    for (const numbers of [minutes, fleet]) {
      for (const minute of numbers.keys()) if (minute <= now - kept) numbers.delete(minute);
    }
    freeRows();
  }

  /** The current minute with room for a resource, and where the resource's values begin. */
  function placeOf(id: string): readonly [minute: Minute, place: number] {
    let row = rows.get(id);
    if (row === undefined) rows.set(id, (row = free.pop() ?? counted.length));
    counted[row] = last;
    let minute = minutes.get(last) ?? new Float64Array(counted.length * names.length);
    if (row >= rowsIn(minute)) {
      const larger = new Float64Array(Math.ceil((row + 1) * 1.25) * names.length);
      larger.set(minute);
      minute = larger;
    }
    minutes.set(last, minute);
    return [minute, row * names.length];
  }

  return {
    since: clock.now(),
    count(id, at, growth) {
      moveOn();
      const minuteOfAt = Math.floor(at / minuteMs);
      if (id === fleetSeries) {
        const { rtt_us: _us, rtts: _measured, ...more } = growth;
        if (minuteOfAt > last - kept) add(fleet, minuteOfAt, more);
        return;
      }
      const [minute, place] = placeOf(id);
      for (const [column, name] of names.entries()) {
        if (column < onlineColumn) minute[place + column] = (minute[place + column] ?? 0) + (growth[name] ?? 0);
      }
      const online = place + onlineColumn;
      const [then, more] = [minutes.get(minuteOfAt), growth.online_ms];
      if (then === undefined || more === undefined || online >= then.length) return;
      then[online] = Math.min((then[online] ?? 0) + more, minuteMs);
    },
    roundTrip(id, us) {
      moveOn();
      if (id === fleetSeries) {
        add(fleet, last, {});
        const point = fleet.get(last);
        if (point !== undefined) Object.assign(point, { rtt_us: us, rtts: 1 });
        return;
      }
      const [minute, place] = placeOf(id);
      // 0 is none.
      minute[place + rttColumn] = Math.max(1, us);
    },
    read(id) {
      moveOn();
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
  const values = minute.subarray(row * names.length, (row + 1) * names.length);
  if (!values.some((value) => value > 0)) return undefined;
  const [bytes_in = 0, bytes_out = 0, sessions = 0, errors = 0, online_ms = 0, rtt_us = 0] = values;
  return { bytes_in, bytes_out, sessions, errors, online_ms, rtt_us, rtts: Math.sign(rtt_us) };
}
