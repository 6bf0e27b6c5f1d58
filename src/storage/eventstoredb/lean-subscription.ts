/**
 * Subscribes with the client package, but decodes events itself (`read-event.ts`). The connection, the flow of the
 * stream, its errors and all other messages stay with the package. Depends on three internals of the package: unknown
 * options of a call reach `callArguments`, the result of that goes to the call, and a subscription converts events with
 * its `convertGrpcEvent`. `tryLeanSubscription` finds out whether they are there (`client-parts.ts`).
 */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
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

/** A message of a server with this event, and one without an event. */
const sample = {
  message: Buffer.from(
    'Cq8BCqkBCiYSJDExMTExMTExLTIyMjItNDMzMy04NDQ0LTU1NTU1NTU1NTU1NRIHGgVzdmMteBgHIIQHKIQHMgkKBHR5cGUSAVQyIAoMY29udGVudC10' +
      'eXBlEhBhcHBsaWNhdGlvbi9qc29uMgwKB2NyZWF0ZWQSATE6KnsiY29tbWFuZCI6eyJpZCI6ImMiLCJpbmRleCI6MCwiY291bnQiOjF9fUIHeyJh' +
      'IjoxfRiEBw==',
    'base64',
  ),
  event: { stream: 'svc-x', type: 'T', revision: 7, position: 900, data: { a: 1 } },
  other: Buffer.from('QgA=', 'base64'),
} as const;

/** A package that converts events itself after all finds nothing to convert; an error there would end the process. */
function harmless(message: Partial<LeanMessage>): object {
  const event = message.getEvent?.();
  const no = (): boolean => false;
  return { ...message, getEvent: () => ({ ...event, hasEvent: no, hasLink: no, hasCommitPosition: no }) };
}

/**
 * Subscribes through a stand-in for the call to the server, which decodes like the gRPC library, and compares what
 * arrives with what was sent.
 * @param client one that is used for nothing else
 * @throws Error that says what is different in this version of the package
 */
export async function tryLeanSubscription(
  client: EventStoreDBClient,
  options: Pick<SubscribeToAllOptions, 'fromPosition'>,
): Promise<void> {
  const others: Buffer[] = [];
  const call = (callOptions: { readonly interceptors?: readonly Interceptor[] } | undefined): Readable => {
    const definition = {
      responseDeserialize: (bytes: Buffer): unknown => {
        others.push(bytes);
        return { hasEvent: () => false };
      },
    };
    const [interceptor] = callOptions?.interceptors ?? [];
    interceptor?.({ method_definition: definition }, (next) => next);
    const decode = (bytes: Buffer): unknown => harmless(definition.responseDeserialize(bytes) as Partial<LeanMessage>);
    return Readable.from([decode(sample.other), decode(sample.message)]);
  };
  type Creator = (grpc: { read(request: unknown, metadata: unknown, options?: object): Readable }) => unknown;
  const inner = client as unknown as { GRPCStreamCreator: unknown };
  inner.GRPCStreamCreator = (_service: unknown, _name: unknown, creator: Creator) => async () =>
    creator({ read: (_request, _metadata, callOptions) => call(callOptions) });
  const subscription = subscribeLean(client, options);
  try {
    const event = await new Promise<LeanEvent>((resolve, reject) => {
      subscription.once('data', resolve);
      subscription.once('error', reject);
      subscription.once('end', () => reject(new Error('our decoder was not asked')));
    });
    assert.deepEqual({ ...event.ours, id: '', metadata: {} }, { ...sample.event, id: '', metadata: {} });
    assert.deepEqual(others, [sample.other], 'other messages are left to the package');
  } finally {
    subscription.on('error', () => undefined);
    subscription.destroy();
  }
}
