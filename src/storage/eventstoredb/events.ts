/** Events between the port and the client: JSON both ways. What is no event of ours is recognised here. */
import { jsonEvent, type EventData, type ResolvedEvent } from '@eventstore/db-client';
import type { EventMetadata, ProposedEvent, RecordedEvent } from '../../kernel/event.js';
import type { JsonObject } from '../../kernel/json.js';
import { metadataJson } from '../event-json.js';
import { toNumber } from './positions.js';

/** The revision of a tombstone, 2^63 - 1: an event of the server in a stream of ours. */
const tombstoneRevision = 9_223_372_036_854_775_807n;

const utf8 = new TextEncoder();

/** The client writes metadata that is bytes as it is, but makes the JSON of the data itself and takes no other. */
export function toEventData(event: ProposedEvent): EventData {
  const { id, type, data } = event;
  return jsonEvent({ id, type, data, metadata: utf8.encode(metadataJson(event)) }) as EventData;
}

/**
 * Undefined for what is not ours: events of the server (metadata, tombstones), links to nothing, and bytes.
 * @throws RangeError for a position of 2^53 or more
 */
export function toRecordedEvent({ event, commitPosition }: ResolvedEvent): RecordedEvent | undefined {
  if (event === undefined || !event.isJson) return undefined;
  if (event.type.startsWith('$') || event.streamId.startsWith('$') || event.revision >= tombstoneRevision)
    return undefined;
  const position = event.position?.commit ?? commitPosition;
  if (position === undefined) throw new RangeError('the event store tells no positions; it has to be 22.6 or newer');
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
