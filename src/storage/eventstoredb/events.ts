/**
 * Converts events and positions between the port and the client. `../broken-log.ts` recognises foreign events.
 * Positions and revisions are 64-bit on the wire and numbers here; values from 2^53 (9 PB of log) on are refused.
 */
import { jsonEvent, type EventData, type Position, type ResolvedEvent } from '@eventstore/db-client';
import type { ProposedEvent, StoredEvent } from '../../kernel/event.js';
import { storedEvent } from '../broken-log.js';
import { eventJson } from '../event-json.js';
import type { ResumePoint } from '../event-store.js';

/** 2^63 - 1, the revision of a tombstone: an event that the server writes into one of our streams. */
const tombstoneRevision = 9_223_372_036_854_775_807n;

const utf8 = new TextEncoder();

/** The client takes metadata as bytes, but always serialises the data of a JSON event itself. */
export function toEventData(event: ProposedEvent): EventData {
  const { id, type, data } = event;
  return jsonEvent({ id, type, data, metadata: utf8.encode(eventJson(event).metadata) }) as EventData;
}

/**
 * @returns undefined for a tombstone, which is the server's own
 * @throws RangeError for a position of 2^53 or more
 */
export function toStoredEvent({ event, commitPosition }: ResolvedEvent): StoredEvent | undefined {
  if (event === undefined || event.revision >= tombstoneRevision) return undefined;
  const position = event.position?.commit ?? commitPosition;
  if (position === undefined) throw new RangeError('the event store reports no positions; it must be 22.6 or newer');
  return storedEvent({
    id: event.id,
    type: event.type,
    data: event.data,
    metadata: event.metadata,
    stream: event.streamId,
    revision: toNumber(event.revision),
    position: toNumber(position),
  });
}

/** @throws RangeError from 2^53 on, where two positions would become the same number */
export function toNumber(value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new RangeError(`the log's position ${value} is 2^53 or more`);
  return Number(value);
}

/** "No position", -1 on the server: some servers report it as a checkpoint before the first matching event. */
const nowhere = 2n ** 64n - 1n;

/** @returns undefined for a checkpoint at no position, which says nothing @throws RangeError from 2^53 on */
export function toResumePoint({ commit, prepare }: Position): ResumePoint | undefined {
  if (commit === nowhere && prepare === nowhere) return undefined;
  return { commit: toNumber(commit), prepare: toNumber(prepare) };
}

/** Keeps both halves: a checkpoint (commit, 0) must be sent back unchanged (`passedBy` says what it means). */
export const toPosition = ({ commit, prepare }: ResumePoint): Position => ({
  commit: BigInt(commit),
  prepare: BigInt(prepare),
});
