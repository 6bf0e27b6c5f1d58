/** The classic calls: `Streams/Append`, `Delete` and `Tombstone`. */
import { status } from '@grpc/grpc-js';
import {
  asPlain,
  expectedOf,
  handlerThrew,
  notValid,
  positionMessage,
  Refusal,
  streamDeleted,
  streamName,
} from './calls.js';
import { maxAppendBytes, successMessage } from './batch-append.js';
import type { Decision, EventLog, Expected, NewEvent } from './log.js';
import { proposedEvent } from './proposed.js';
import type { Plain } from './wire.js';

const legacyNoStream = '18446744073709551615';

export interface ClassicAppend {
  readonly stream: string;
  readonly expected: Expected;
  readonly events: readonly NewEvent[];
}

function eventOf(message: Plain): NewEvent {
  const metadata = asPlain(message['metadata']) ?? {};
  for (const key of ['type', 'content-type']) {
    if (metadata[key] !== undefined) continue;
    throw new Refusal(status.INVALID_ARGUMENT, `Required Metadata Property '${key}' is missing`, {
      exception: 'missing-required-metadata-property',
      'required-metadata-properties': 'type,content-type',
    });
  }
  try {
    return proposedEvent(message);
  } catch {
    throw handlerThrew();
  }
}

/** @throws Refusal */
export function parseAppend(messages: readonly Plain[]): ClassicAppend {
  const [first, ...rest] = messages;
  const options = asPlain(first?.['options']);
  if (options === undefined) throw handlerThrew();
  const stream = streamName(options);
  if (stream === undefined || stream === '') throw handlerThrew();
  const expected = expectedOf(options, 'revision');
  if (expected === undefined) throw notValid('AppendReq+Types+Options+ExpectedStreamRevisionOneofCase');
  let bytes = 0;
  const events = rest.map((message) => {
    const proposed = asPlain(message['proposedMessage']);
    if (proposed === undefined) throw handlerThrew();
    const event = eventOf(proposed);
    bytes += event.data.length;
    if (bytes > maxAppendBytes) {
      throw new Refusal(status.INVALID_ARGUMENT, `Maximum Append Size of ${maxAppendBytes} Exceeded.`, {
        exception: 'maximum-append-size-exceeded',
        'maximum-append-size': String(maxAppendBytes),
      });
    }
    return event;
  });
  return { stream, expected, events };
}

function expectedFields(expected: Expected): Plain {
  switch (expected.kind) {
    case 'exact':
      return { expectedRevision2060: expected.revision, expectedRevision: expected.revision };
    case 'no_stream':
      return { expectedRevision2060: legacyNoStream, expectedNoStream: {} };
    case 'any':
      return { any2060: {}, expectedAny: {} };
    case 'stream_exists':
      return { streamExists2060: {}, expectedStreamExists: {} };
    default: {
      const never: never = expected;
      throw new Error(`unknown expectation ${JSON.stringify(never)}`);
    }
  }
}

/** The answer to `Append`. @throws Refusal when the stream is deleted */
export function appendAnswer(decision: Decision, { stream, expected }: ClassicAppend): Plain {
  switch (decision.kind) {
    case 'success':
      return { success: successMessage(decision) };
    case 'wrong': {
      const current =
        decision.actual === undefined
          ? { noStream2060: {}, currentNoStream: {} }
          : { currentRevision2060: decision.actual, currentRevision: decision.actual };
      return { wrongExpectedVersion: { ...current, ...expectedFields(expected) } };
    }
    case 'deleted':
      throw streamDeleted(stream);
    default: {
      const never: never = decision;
      throw new Error(`unknown decision ${JSON.stringify(never)}`);
    }
  }
}

const legacy = (expected: Expected): number =>
  expected.kind === 'exact' ? expected.revision : { no_stream: -1, any: -2, stream_exists: -4 }[expected.kind];

/** The answer to `Delete` or `Tombstone`. @throws Refusal */
export function deleteAnswer(log: EventLog, request: Plain, call: 'Delete' | 'Tombstone'): Plain {
  const options = asPlain(request['options']);
  const stream = streamName(options);
  if (options === undefined || stream === undefined) throw handlerThrew();
  const expected = expectedOf(options, 'revision');
  if (expected === undefined) throw notValid(`${call}Req+Types+Options+ExpectedStreamRevisionOneofCase`);
  const decision = call === 'Delete' ? log.softDelete(stream, expected) : log.tombstone(stream, expected);
  if (decision.kind === 'deleted') throw streamDeleted(stream);
  if (decision.kind === 'success') return { position: positionMessage(decision.position ?? 0) };
  const versions = { expected: String(legacy(expected)), actual: String(decision.actual ?? -1) };
  throw new Refusal(
    status.FAILED_PRECONDITION,
    `Delete failed due to WrongExpectedVersion. Stream: ${stream}, Expected version: ${versions.expected}, Actual version: ${versions.actual}`,
    {
      exception: 'wrong-expected-version',
      'stream-name': stream,
      'expected-version': versions.expected,
      'actual-version': versions.actual,
    },
  );
}
