/**
 * Identifiers as a dependency: random ones for new things, and name-based ones, which are the same at every run.
 */
import { createHash } from 'node:crypto';
import { createRandomPool } from './random-pool.js';

export interface Ids {
  /** A new UUID, lower case. Nobody can guess it, and it is no secret. */
  next(): string;
}

const idsPerDraw = 512;
/** Two of them for the count. */
const randomBytesPerId = 10;
const lastCount = 0xfff;

/**
 * Makes UUIDs of version 7 (RFC 9562, section 5.7): milliseconds, a count within the millisecond that begins at a random
 * number, and 62 random bits. They sort in the order in which they are made, whatever the clock does meanwhile. A store that
 * keeps things by id then writes new ones beside each other, and not each on a page of its own.
 * @param now milliseconds since the epoch
 * @internal exported for tests
 */
export function createIds(now: () => number): Ids {
  const draw = createRandomPool(randomBytesPerId, idsPerDraw);
  let millisecond = 0;
  let start = '';
  let count = 0;

  const begin = (at: number, random12: number): void => {
    millisecond = at;
    const hex = at.toString(16).padStart(12, '0');
    start = `${hex.slice(0, 8)}-${hex.slice(8)}-`;
    // In the lower half, so that there is room to count.
    count = random12 & (lastCount >> 1);
  };

  return {
    next() {
      const random = draw();
      const at = now();
      if (at > millisecond) begin(at, random.readUInt16BE(0));
      else if (count < lastCount) count += 1;
      else begin(millisecond + 1, random.readUInt16BE(0));
      // Version and variant stand in the upper bits.
      const counted = (0x7000 | count).toString(16);
      random[2] = ((random[2] ?? 0) & 0x3f) | 0x80;
      const rest = random.toString('hex', 2);
      return `${start}${counted}-${rest.slice(0, 4)}-${rest.slice(4)}`;
    },
  };
}

export const randomIds: Ids = createIds(Date.now);

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** True for a UUID in canonical lower-case form. */
export function isUuid(value: string): boolean {
  return uuidPattern.test(value);
}

/** A UUID of version 8 (RFC 9562, section 5.8) derived from a name; for fixtures and benchmarks. */
export function uuidFromName(name: string): string {
  const hash = createHash('sha256').update(name).digest();
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x80;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  const hex = hash.subarray(0, 16).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
