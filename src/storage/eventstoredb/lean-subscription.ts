/**
 * Subscribes with the client package, but decodes events itself (`read-event.ts`). The connection, the flow of the
 * stream, its errors and all other messages stay with the package. Depends on three internals of the package, so its
 * version is pinned: unknown options of a call reach `callArguments`, the result of that goes to the call, and a
 * subscription converts events with its `convertGrpcEvent`.
 */
import type {
  AllStreamSubscription,
  EventStoreDBClient,
  ResolvedEvent,
  SubscribeToAllOptions,
} from '@eventstore/db-client';
import type { RecordedEvent } from '../../kernel/event.js';
import { readEventOf } from './read-event.js';

/**
 * An event of a lean subscription: `ours` is the decoded event, if this service may have written it, of `bytes` bytes.
 */
export type LeanEvent = ResolvedEvent & { readonly ours?: RecordedEvent; readonly bytes?: number };

interface LeanMessage {
  hasEvent(): true;
  getEvent(): Required<Pick<LeanEvent, 'ours' | 'bytes'>>;
}

type Deserialize = (bytes: Buffer) => unknown;

/** An interceptor of the gRPC library below the client package; it may replace how responses are decoded. */
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

/** Prepares a client once. Only calls with the `lean` option change. */
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

/** Like the client's `subscribeToAll`, but most events come as `ours`. */
export function subscribeLean(client: EventStoreDBClient, options: SubscribeToAllOptions): AllStreamSubscription {
  prepare(client);
  const subscription = client.subscribeToAll({ ...options, [lean]: true } as SubscribeToAllOptions);
  const inner = subscription as unknown as { convertGrpcEvent(event: object): object };
  const { convertGrpcEvent } = inner;
  inner.convertGrpcEvent = (event) => ('ours' in event ? event : convertGrpcEvent(event));
  return subscription;
}
