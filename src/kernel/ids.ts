/**
 * Identifiers as a dependency: random ones for new things, and name-based ones, which are the same at every run.
 */
import { createHash } from 'node:crypto';
import { v7 } from 'uuid';

export interface Ids {
  /** A new UUID, lower case. Nobody can guess it, and it is no secret. */
  next(): string;
}

/** UUIDs of version 7, which sort in the order in which they are made: a store that keeps things by id writes new ones together. */
export const randomIds: Ids = { next: () => v7() };

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
