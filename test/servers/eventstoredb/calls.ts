/** What the handlers of the test server share: a call, its status, and refusals with the right trailers. */
import { Metadata, status } from '@grpc/grpc-js';
import type { Faults } from './faults.js';
import { tombstoneRevision, type Expected, type LogEvent } from './log.js';
import type { Plain } from './wire.js';

/** Ends a call with a status other than OK. */
export class Refusal extends Error {
  readonly code: number;
  readonly trailers: Readonly<Record<string, string>>;

  constructor(code: number, details: string, trailers: Readonly<Record<string, string>> = {}) {
    super(details);
    this.code = code;
    this.trailers = trailers;
  }
}

export const handlerThrew = (): Refusal => new Refusal(status.UNKNOWN, 'Exception was thrown by handler.');
export const notValid = (what: string, text = "'None'"): Refusal =>
  new Refusal(status.INVALID_ARGUMENT, `${text} is not a valid EventStore.Client.Streams.${what}`);
export const streamDeleted = (stream: string): Refusal =>
  new Refusal(status.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, {
    exception: 'stream-deleted',
    'stream-name': stream,
  });

/** The status object that grpc-js expects. */
export function statusOf(error: unknown): { code: number; details: string; metadata: Metadata } {
  const refusal =
    error instanceof Refusal ? error : new Refusal(status.UNKNOWN, `Exception was thrown: ${String(error)}`);
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(refusal.trailers)) metadata.set(key, value);
  return { code: refusal.code, details: refusal.message, metadata };
}

/** What a node without a leader answers. */
export const notReady = (): Refusal => new Refusal(status.UNAVAILABLE, 'Server Is Not Ready');

/** @throws Refusal when this node takes no appends */
export function requireAppends(faults: Faults): void {
  if (faults.notReady) throw notReady();
}

/** @throws Refusal when the call requires the leader and this node is another, or knows none */
export function requireLeader(metadata: Metadata, faults: Faults): void {
  if (metadata.get('requires-leader')[0] !== 'true') return;
  if (faults.notReady) throw notReady();
  if (faults.leader !== undefined) throw notLeader(faults.leader.host, faults.leader.port);
}

/** @throws Refusal when the call's user is unknown, or may not make it */
export function requireRights(metadata: Metadata, { admin, stranger }: Faults): void {
  if (admin === undefined) return;
  const given = metadata.get('authorization')[0];
  const is = (user: Faults['admin']): boolean =>
    user !== undefined && given === `Basic ${Buffer.from(`${user.username}:${user.password}`).toString('base64')}`;
  if (is(admin)) return;
  if (given === undefined || is(stranger)) {
    throw new Refusal(status.PERMISSION_DENIED, 'Access Denied', { exception: 'access-denied' });
  }
  // A real server answers with HTTP 401 alone; this is what the client makes of it.
  throw new Refusal(status.UNAUTHENTICATED, 'Received HTTP status code 401');
}

export const notLeader = (host: string, port: number): Refusal =>
  new Refusal(status.NOT_FOUND, 'Leader info available', {
    exception: 'not-leader',
    'leader-endpoint-host': host,
    'leader-endpoint-port': String(port),
  });

/** How a client sees a call that ends without a status. */
export const callReset = (): Refusal =>
  new Refusal(status.INTERNAL, 'Received RST_STREAM with code 0 (Call ended without gRPC status)');

export const asPlain = (value: unknown): Plain | undefined =>
  typeof value === 'object' && value !== null ? (value as Plain) : undefined;

/** The name in a message that identifies a stream; undefined when the message is missing. */
export function streamName(options: Plain | undefined): string | undefined {
  const identifier = asPlain(options?.['streamIdentifier']);
  return identifier === undefined ? undefined : String(identifier['streamName'] ?? '');
}

/** @returns undefined when none is set @param exact name of the member that holds a revision */
export function expectedOf(options: Plain, exact: 'revision' | 'streamPosition'): Expected | undefined {
  if (options[exact] !== undefined) return { kind: 'exact', revision: Number(options[exact]) };
  if (options['noStream'] !== undefined) return { kind: 'no_stream' };
  if (options['any'] !== undefined) return { kind: 'any' };
  return options['streamExists'] === undefined ? undefined : { kind: 'stream_exists' };
}

export const positionMessage = (position: number): Plain => ({ commitPosition: position, preparePosition: position });

/** A UUID in its two forms. @throws RangeError when the text is not a UUID */
export function uuidText(message: Plain): string {
  const structured = asPlain(message['structured']);
  if (structured !== undefined) {
    const half = (value: unknown): string =>
      BigInt.asUintN(64, BigInt(String(value)))
        .toString(16)
        .padStart(16, '0');
    const hex = half(structured['mostSignificantBits']) + half(structured['leastSignificantBits']);
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  }
  const text = String(message['string'] ?? '').toLowerCase();
  if (!/^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/.test(text)) throw new RangeError('Unrecognized Guid format.');
  return text;
}

export function structuredUuid(text: string): Plain {
  const hex = text.replaceAll('-', '');
  const half = (part: string): string => BigInt.asIntN(64, BigInt(`0x${part}`)).toString();
  return {
    structured: { mostSignificantBits: half(hex.slice(0, 16)), leastSignificantBits: half(hex.slice(16)) },
  };
}

/** An event in the form of the wire. */
export function recordedMessage(event: LogEvent, structured: boolean): Plain {
  return {
    id: structured ? structuredUuid(event.id) : { string: event.id },
    streamIdentifier: { streamName: event.stream },
    streamRevision: event.revision === tombstoneRevision ? '9223372036854775807' : event.revision,
    preparePosition: event.position,
    commitPosition: event.position,
    metadata: {
      type: event.type,
      created: `${event.created}0000`,
      'content-type': event.isJson ? 'application/json' : 'application/octet-stream',
    },
    customMetadata: event.metadata,
    data: event.data,
  };
}
