/** Makes the events to append for a decided command, with ids, metadata and size limits. */
import { schemaVersions } from '../domain/log/upcast.js';
import { timestamp, type Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import type { EventMetadata, ProposedEvent, RecordedCommand, RecordedEvent } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import { limits } from '../kernel/limits.js';
import { wholeEventBytes } from '../storage/event-json.js';
import type { CommandContext } from './port.js';

export interface Proposal {
  readonly commandId: string;
  readonly events: readonly ProposedEvent[];
  /** Size of all events together, as JSON. */
  readonly bytes: number;
}

type DecidedEvents = readonly { readonly type: string; readonly data: object }[];

/** Command-level metadata, stored on the last event. */
export interface CommandMarks {
  readonly touched?: EventMetadata['touched'] | undefined;
  readonly link?: EventMetadata['link'] | undefined;
}

/**
 * @param marksOf gives the command its marks: in a stream with a log chain, at least its link
 * @throws ServiceError `payload_too_large` when the events are together larger than a command may be
 */
export function propose(
  decided: DecidedEvents,
  context: CommandContext,
  clock: Clock,
  ids: Ids,
  marksOf: (events: readonly ProposedEvent[]) => CommandMarks = () => ({}),
): Proposal {
  const unmarked = unmarkedEvents(decided, context, clock, ids);
  return measured(withMarks(unmarked, marksOf(unmarked)));
}

/** The events of a command, before its marks. */
export function unmarkedEvents(
  decided: DecidedEvents,
  context: CommandContext,
  clock: Clock,
  ids: Ids,
): readonly ProposedEvent[] {
  const commandId = ids.next();
  const occurred_at = timestamp(clock.now());
  const { actor, requestId: request_id, token, revertOf: revert_of, idempotency } = context;
  return decided.map(({ type, data }, index): ProposedEvent => {
    const command = { id: commandId, index, count: decided.length };
    const schema_version = (schemaVersions as { readonly [type: string]: number })[type] ?? 1;
    let metadata: EventMetadata = { command, actor, request_id, occurred_at, schema_version };
    if (token !== undefined) metadata = { ...metadata, token };
    if (revert_of !== undefined) metadata = { ...metadata, revert_of };
    if (idempotency !== undefined) metadata = { ...metadata, idempotency };
    return { id: ids.next(), type, data: data as JsonObject, metadata };
  });
}

/** @throws ServiceError `payload_too_large` when the events are together larger than a command may be */
export function measured(events: readonly ProposedEvent[]): Proposal {
  const bytes = events.reduce((sum, event) => sum + wholeEventBytes(event), 0);
  if (bytes > limits.events.commandBytes) {
    throw new ServiceError(
      'payload_too_large',
      `the change makes events of ${bytes} bytes; the events of one change may have at most ${limits.events.commandBytes}`,
    );
  }
  return { commandId: events[0]?.metadata.command.id ?? '', events, bytes };
}

/** The events, with the marks in the last one. */
export function withMarks(events: readonly ProposedEvent[], { touched, link }: CommandMarks): readonly ProposedEvent[] {
  const last = events.at(-1);
  if ((link === undefined && touched === undefined) || last === undefined) return events;
  const { id, type, data, metadata } = last;
  const { command, actor, request_id, occurred_at, schema_version, token } = metadata;
  const plain = metadata.revert_of === undefined && metadata.idempotency === undefined;
  // Nearly every command is plain, and a literal is many times faster than a copy. Undefined fields are not stored.
  const marks = plain
    ? { command, actor, request_id, occurred_at, schema_version, token, touched, link }
    : { ...metadata, touched, link };
  const marked = { id, type, data, metadata: marks as EventMetadata };
  return events.length === 1 ? [marked] : [...events.slice(0, -1), marked];
}

/** The proposal as the log will hold it after `revision`. Its position is unknown before the append. */
export function asRecorded(stream: string, proposal: Pick<Proposal, 'events'>, revision: number): RecordedCommand {
  const [first, ...rest] = proposal.events.map(({ id, type, data, metadata }, index): RecordedEvent => {
    return { id, type, data, metadata, stream, revision: revision + 1 + index, position: 0 };
  });
  if (first === undefined) throw new RangeError('a command without events is not recorded');
  return { stream, events: [first, ...rest] };
}
