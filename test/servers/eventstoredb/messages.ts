/**
 * The messages of the `event_store.client` services as tables for `wire.ts`. The numbers are those of the published
 * contract; `wire.test.ts` compares them with the classes of the client package.
 */
import type { Field, Schema } from './wire.js';

const message = (name: string, fields: Readonly<Record<string, Field>>): Schema => ({ name, fields });

const empty = message('Empty', {});
const uuid = message('UUID', {
  structured: [1, message('Structured', { mostSignificantBits: [1, 'int64'], leastSignificantBits: [2, 'int64'] })],
  string: [2, 'string', 'oneof'],
});
const streamIdentifier = message('StreamIdentifier', { streamName: [3, 'text'] });
const position = message('Position', { commitPosition: [1, 'uint64'], preparePosition: [2, 'uint64'] });
const proposedMessage = message('ProposedMessage', {
  id: [1, uuid],
  metadata: [2, 'map'],
  customMetadata: [3, 'bytes'],
  data: [4, 'bytes'],
});

const expression = message('Expression', { regex: [1, 'string'], prefix: [2, 'string', 'repeated'] });
const readOptions = message('ReadReq.Options', {
  stream: [
    1,
    message('StreamOptions', {
      streamIdentifier: [1, streamIdentifier],
      revision: [2, 'uint64', 'oneof'],
      start: [3, empty],
      end: [4, empty],
    }),
  ],
  all: [2, message('AllOptions', { position: [1, position], start: [2, empty], end: [3, empty] })],
  readDirection: [3, { enum: { 0: 'Forwards', 1: 'Backwards' } }],
  resolveLinks: [4, 'bool'],
  count: [5, 'uint64', 'oneof'],
  subscription: [6, empty],
  filter: [
    7,
    message('FilterOptions', {
      streamIdentifier: [1, expression],
      eventType: [2, expression],
      max: [3, 'uint32', 'oneof'],
      count: [4, empty],
      checkpointIntervalMultiplier: [5, 'uint32'],
    }),
  ],
  noFilter: [8, empty],
  uuidOption: [9, message('UUIDOption', { structured: [1, empty], string: [2, empty] })],
  controlOption: [10, message('ControlOption', { compatibility: [1, 'uint32'] })],
});

const recordedEvent = message('RecordedEvent', {
  id: [1, uuid],
  streamIdentifier: [2, streamIdentifier],
  streamRevision: [3, 'uint64'],
  preparePosition: [4, 'uint64'],
  commitPosition: [5, 'uint64'],
  metadata: [6, 'map'],
  customMetadata: [7, 'bytes'],
  data: [8, 'bytes'],
});
const success = {
  currentRevision: [1, 'uint64', 'oneof'],
  noStream: [2, empty],
  position: [3, position],
  noPosition: [4, empty],
} as const satisfies Readonly<Record<string, Field>>;

export const ReadReq = message('ReadReq', { options: [1, readOptions] });
export const ReadResp = message('ReadResp', {
  event: [
    1,
    message('ReadEvent', {
      event: [1, recordedEvent],
      link: [2, recordedEvent],
      commitPosition: [3, 'uint64', 'oneof'],
      noPosition: [4, empty],
    }),
  ],
  confirmation: [2, message('SubscriptionConfirmation', { subscriptionId: [1, 'string'] })],
  checkpoint: [3, position],
  streamNotFound: [4, message('StreamNotFound', { streamIdentifier: [1, streamIdentifier] })],
  firstStreamPosition: [5, 'uint64', 'oneof'],
  lastStreamPosition: [6, 'uint64', 'oneof'],
  lastAllStreamPosition: [7, position],
  caughtUp: [8, empty],
  fellBehind: [9, empty],
});

export const AppendReq = message('AppendReq', {
  options: [
    1,
    message('AppendReq.Options', {
      streamIdentifier: [1, streamIdentifier],
      revision: [2, 'uint64', 'oneof'],
      noStream: [3, empty],
      any: [4, empty],
      streamExists: [5, empty],
    }),
  ],
  proposedMessage: [2, proposedMessage],
});
export const AppendResp = message('AppendResp', {
  success: [1, message('AppendResp.Success', success)],
  wrongExpectedVersion: [
    2,
    message('AppendResp.WrongExpectedVersion', {
      currentRevision2060: [1, 'uint64', 'oneof'],
      noStream2060: [2, empty],
      expectedRevision2060: [3, 'uint64', 'oneof'],
      any2060: [4, empty],
      streamExists2060: [5, empty],
      currentRevision: [6, 'uint64', 'oneof'],
      currentNoStream: [7, empty],
      expectedRevision: [8, 'uint64', 'oneof'],
      expectedAny: [9, empty],
      expectedStreamExists: [10, empty],
      expectedNoStream: [11, empty],
    }),
  ],
});

const timestamp = message('Timestamp', { seconds: [1, 'int64'], nanos: [2, 'uint32'] });
export const BatchAppendReq = message('BatchAppendReq', {
  correlationId: [1, uuid],
  options: [
    2,
    message('BatchAppendReq.Options', {
      streamIdentifier: [1, streamIdentifier],
      streamPosition: [2, 'uint64', 'oneof'],
      noStream: [3, empty],
      any: [4, empty],
      streamExists: [5, empty],
      deadline: [6, timestamp],
    }),
  ],
  proposedMessages: [3, proposedMessage, 'repeated'],
  isFinal: [4, 'bool'],
});
const any = message('Any', { typeUrl: [1, 'string'], value: [2, 'bytes'] });
export const BatchAppendResp = message('BatchAppendResp', {
  correlationId: [1, uuid],
  error: [2, message('Status', { code: [1, 'uint32'], message: [2, 'string'], details: [3, any] })],
  success: [3, message('BatchAppendResp.Success', success)],
  streamIdentifier: [4, streamIdentifier],
});

/** What `google.rpc.Status.details` may contain, by the end of its type URL. */
export const details: Readonly<Record<string, Schema>> = {
  WrongExpectedVersion: message('WrongExpectedVersion', {
    currentStreamRevision: [1, 'uint64', 'oneof'],
    currentNoStream: [2, empty],
    expectedStreamPosition: [3, 'uint64', 'oneof'],
    expectedAny: [4, empty],
    expectedStreamExists: [5, empty],
    expectedNoStream: [6, empty],
  }),
  StreamDeleted: message('StreamDeleted', { streamIdentifier: [1, streamIdentifier] }),
  Timeout: empty,
  MaximumAppendSizeExceeded: message('MaximumAppendSizeExceeded', { maxAppendSize: [1, 'uint32'] }),
  BadRequest: message('BadRequest', { message: [1, 'string'] }),
};

export const DeleteReq = message('DeleteReq', {
  options: [
    1,
    message('DeleteReq.Options', {
      streamIdentifier: [1, streamIdentifier],
      revision: [2, 'uint64', 'oneof'],
      noStream: [3, empty],
      any: [4, empty],
      streamExists: [5, empty],
    }),
  ],
});
export const DeleteResp = message('DeleteResp', { position: [1, position], noPosition: [2, empty] });

export const Empty = empty;
export const SupportedMethods = message('SupportedMethods', {
  methods: [
    1,
    message('SupportedMethod', {
      methodName: [1, 'string'],
      serviceName: [2, 'string'],
      features: [3, 'string', 'repeated'],
    }),
    'repeated',
  ],
  eventStoreServerVersion: [2, 'string'],
});
export const ClusterInfo = message('ClusterInfo', {
  members: [
    1,
    message('MemberInfo', {
      instanceId: [1, uuid],
      timeStamp: [2, 'int64'],
      state: [3, { enum: { 0: 'Initializing', 2: 'Unknown', 6: 'Follower', 8: 'Leader' } }],
      isAlive: [4, 'bool'],
      httpEndPoint: [5, message('EndPoint', { address: [1, 'string'], port: [2, 'uint32'] })],
    }),
    'repeated',
  ],
});
