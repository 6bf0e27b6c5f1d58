/** Identifiers as a dependency: random ones for new things, and name-based ones, which are the same in every run. */
import { createHash } from 'node:crypto';
import { v7 } from 'uuid';

export interface Ids {
  /** A new UUID in lower case. It cannot be guessed, but it is no secret. */
  next(): string;
}

/** Version 7 UUIDs, which sort by creation time: a store that orders by id writes new entries side by side. */
export const randomIds: Ids = { next: () => v7() };

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function isUuid(value: string): boolean {
  return uuidPattern.test(value);
}

const joinPrefix = 'join:';

/** The id by which a join token opens a session, instead of a node's id. No node has such an id. */
export const joinIdOf = (tokenId: string): string => joinPrefix + tokenId;

/** The join token of such an id; undefined for the id of a node. */
export const joinTokenIn = (nodeId: string): string | undefined =>
  nodeId.startsWith(joinPrefix) ? nodeId.slice(joinPrefix.length) : undefined;

/** A version 8 UUID (RFC 9562, section 5.8) derived from a name; for fixtures and benchmarks. */
export function uuidFromName(name: string): string {
  const hash = createHash('sha256').update(name).digest();
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x80;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  const hex = hash.subarray(0, 16).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
