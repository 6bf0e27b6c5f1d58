/**
 * Subscribes as the client package does, but takes its events past the package's own decoding (`read-event.ts`): the
 * connection, the flow of the stream, its errors and every other message stay the package's. Depends on three things
 * inside of it, which is why its version is fixed: options that a call does not know reach `callArguments`, what that
 * returns goes to the call, and a subscription converts events by its `convertGrpcEvent`.
 */
import type {
  AllStreamSubscription,
  EventStoreDBClient,
  ResolvedEvent,
  SubscribeToAllOptions,
} from '@eventstore/db-client';
import type { RecordedEvent } from '../../kernel/event.js';
import { readEventOf } from './read-event.js';

/** An event of a lean subscription: `ours` is one that this service may have written, ready for use, of so many bytes. */
export type LeanEvent = ResolvedEvent & { readonly ours?: RecordedEvent; readonly bytes?: number };

interface LeanMessage {
  hasEvent(): true;
  getEvent(): Required<Pick<LeanEvent, 'ours' | 'bytes'>>;
}

type Deserialize = (bytes: Buffer) => unknown;

/** Of the library below the client package: what it asks before a call, which may change how answers are read. */
type Interceptor = (
  options: { readonly method_definition: { responseDeserialize: Deserialize } },
  next: (options: unknown) => unknown,
) => unknown;

type CallArguments = (base: object, call?: object) => [metadata: unknown, options: object];

const lean = Symbol('decoded by this service');
const prepared = new WeakSet<EventStoreDBClient>();

const deserializer =
  (others: Deserialize): Deserialize =>
  (bytes) => {
    const ours = readEventOf(bytes);
    if (ours === undefined) return others(bytes);
    return { hasEvent: () => true, getEvent: () => ({ ours, bytes: bytes.length }) } satisfies LeanMessage;
  };

const intercept: Interceptor = (options, next) => {
  const method = options.method_definition;
  method.responseDeserialize = deserializer(method.responseDeserialize);
  return next(options);
};

/** Once for a client: its calls stay as they are but for those that ask for more. */
function prepare(client: EventStoreDBClient): void {
  if (prepared.has(client)) return;
  prepared.add(client);
  const inner = client as unknown as { callArguments: CallArguments };
  const { callArguments } = inner;
  inner.callArguments = (base, call) => {
    const [metadata, options] = callArguments(base, call);
    return [metadata, lean in base ? { ...options, interceptors: [intercept] } : options];
  };
}

/** Like the client's `subscribeToAll`; most of its events come as `ours`. */
export function subscribeLean(client: EventStoreDBClient, options: SubscribeToAllOptions): AllStreamSubscription {
  prepare(client);
  const subscription = client.subscribeToAll({ ...options, [lean]: true } as SubscribeToAllOptions);
  const inner = subscription as unknown as { convertGrpcEvent(event: object): object };
  const { convertGrpcEvent } = inner;
  inner.convertGrpcEvent = (event) => ('ours' in event ? event : convertGrpcEvent(event));
  return subscription;
}
