/** Converts events between the port and the client, and recognises events that this service did not write. */
import { jsonEvent, type EventData, type ResolvedEvent } from '@eventstore/db-client';
import type { EventMetadata, ProposedEvent, RecordedEvent } from '../../kernel/event.js';
import type { JsonObject } from '../../kernel/json.js';
import { metadataJson } from '../event-json.js';
import { toNumber } from './positions.js';

/** 2^63 - 1, the revision of a tombstone: an event that the server writes into a stream of ours. */
const tombstoneRevision = 9_223_372_036_854_775_807n;

const utf8 = new TextEncoder();

/** The client takes metadata as bytes, but it always serialises the data of a JSON event itself. */
export function toEventData(event: ProposedEvent): EventData {
  const { id, type, data } = event;
  return jsonEvent({ id, type, data, metadata: utf8.encode(metadataJson(event)) }) as EventData;
}

/**
 * @returns undefined for what this service did not write: the server's metadata and tombstones, dead links, and bytes
 * @throws RangeError for a position of 2^53 or more
 */
export function toRecordedEvent({ event, commitPosition }: ResolvedEvent): RecordedEvent | undefined {
  if (event === undefined || !event.isJson) return undefined;
  if (event.type.startsWith('$') || event.streamId.startsWith('$') || event.revision >= tombstoneRevision)
    return undefined;
  const position = event.position?.commit ?? commitPosition;
  if (position === undefined) throw new RangeError('the event store reports no positions; it must be 22.6 or newer');
  return {
    id: event.id,
    type: event.type,
    data: event.data as JsonObject,
    metadata: event.metadata as unknown as EventMetadata,
    stream: event.streamId,
    revision: toNumber(event.revision),
    position: toNumber(position),
  };
}
