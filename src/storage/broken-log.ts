/**
 * Detects what makes a log unreadable: incomplete commands, and events that this service cannot have written. Other
 * programs may write to the same server, so adapters check every event here before anything trusts its type. Implements
 * `docs/contract/domain.md#one-consistency-boundary-the-fleet`, "a stream is this service's by its exact name".
 */
import {
  isForeign,
  type EventMetadata,
  type ForeignEvent,
  type RecordedEvent,
  type StoredEvent,
} from '../kernel/event.js';
import type { JsonObject } from '../kernel/json.js';
import { bounds } from './bounds.js';

/** The log cannot be read past this point, and retrying does not help: an operator must look at it. */
export class BrokenLogError extends Error {
  override name = 'BrokenLogError';
}

/** The help page for operators who find a foreign event. */
export const foreignEventPage = 'docs/how-to/shared-eventstoredb.md';

/** A foreign event is in a stream whose events build on each other. */
export class ForeignEventError extends BrokenLogError {
  readonly event: ForeignEvent;

  constructor(event: ForeignEvent) {
    const { stream, revision, id, foreign } = event;
    super(`${stream}@${revision} (event ${id}) was not written by this service: ${foreign}; see ${foreignEventPage}`);
    this.name = 'ForeignEventError';
    this.event = event;
  }
}

/** The level at which a part logs what stopped it. The store's watcher has already reported a foreign event. */
export const levelOf = (error: unknown): 'warn' | 'error' => (error instanceof ForeignEventError ? 'warn' : 'error');

/** @throws ForeignEventError */
export function ownEvent(event: StoredEvent): RecordedEvent {
  if (isForeign(event)) throw new ForeignEventError(event);
  return event;
}

/** An event as read, with content of any shape. */
interface ReadEvent extends Omit<RecordedEvent, 'data' | 'metadata'> {
  readonly data: unknown;
  readonly metadata: unknown;
}

/** The event as this service's own, unless the service cannot have written it. */
export function storedEvent(event: ReadEvent): StoredEvent {
  const { id, type, stream, revision, position, data, metadata } = event;
  const foreign = strangenessOf(event);
  if (foreign !== undefined) return { id, type, stream, revision, position, foreign };
  return { id, type, data: data as JsonObject, metadata: metadata as EventMetadata, stream, revision, position };
}

function strangenessOf({ type, data, metadata }: ReadEvent): string | undefined {
  // Links and other types of the server itself.
  if (type.startsWith('$')) return `it has the server's type ${type}`;
  if (metadata === undefined || metadata === null) return 'it has no metadata';
  if (!isObject(metadata)) return 'its metadata is not a JSON object';
  const { command, actor, request_id, occurred_at, schema_version } = metadata;
  if (!isObject(command) || !isCommand(command)) return 'its metadata names no command';
  if (!isObject(actor) || !isActor(actor)) return 'its metadata names no actor';
  const marked = typeof request_id === 'string' && isTime(occurred_at) && Number.isSafeInteger(schema_version);
  if (!marked) return 'its metadata lacks the request, the time or the schema version';
  return isObject(data) ? undefined : 'its data is not a JSON object';
}

type Fields = { readonly [key: string]: unknown };

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);

const isCommand = ({ id, index, count }: Fields): boolean =>
  typeof id === 'string' &&
  Number.isSafeInteger(index) &&
  Number.isSafeInteger(count) &&
  Number(count) <= bounds.commandEvents &&
  Number(index) >= 0 &&
  Number(index) < Number(count);

const isActor = ({ type, id, name }: Fields): boolean =>
  typeof name === 'string' &&
  (typeof id === 'string'
    ? type === 'user' || type === 'agent' || type === 'system'
    : type === 'system' && id === null);

const isTime = (value: unknown): boolean => typeof value === 'string' && !Number.isNaN(Date.parse(value));
