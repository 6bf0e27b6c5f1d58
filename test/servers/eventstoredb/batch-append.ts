/**
 * `Streams/BatchAppend`: requests in fragments by correlation id, decided in order. Bad requests are answered and, as
 * on the real server, may be answered a second time when their deadline passes.
 */
import { status } from '@grpc/grpc-js';
import {
  asPlain,
  callReset,
  expectedOf,
  notLeader,
  positionMessage,
  Refusal,
  streamName,
  structuredUuid,
  uuidText,
} from './calls.js';
import type { ServerClock } from './clock.js';
import type { AppendFault } from './faults.js';
import type { Decision, EventLog, Expected, NewEvent } from './log.js';
import { details } from './messages.js';
import { proposedEvent } from './proposed.js';
import { encode, type Plain } from './wire.js';

export const maxAppendBytes = 1_048_576;
const writeTimeoutMs = 2000;

export interface BatchPeer {
  send(message: Plain): void;
  end(error?: Refusal): void;
  /** Cuts the connection. */
  cut(): void;
}

interface Pending {
  readonly correlationId: Plain;
  readonly stream: string;
  readonly expected: Expected;
  readonly options: Plain;
  readonly events: NewEvent[];
  bytes: number;
  /** Takes back its timeout. */
  readonly answered: () => void;
}

const codes: Readonly<Record<string, number>> = {
  WrongExpectedVersion: status.ALREADY_EXISTS,
  StreamDeleted: status.NOT_FOUND,
  Timeout: status.DEADLINE_EXCEEDED,
  MaximumAppendSizeExceeded: status.INVALID_ARGUMENT,
  BadRequest: status.INVALID_ARGUMENT,
};

function errorStatus(name: string, fields: Plain): Plain {
  const schema = details[name];
  if (schema === undefined) throw new Error(`no message ${name}`);
  const value = encode(schema, fields);
  return {
    code: codes[name] ?? status.UNKNOWN,
    message: name,
    details: { typeUrl: `type.googleapis.com/event_store.client.${name}`, value },
  };
}

/** What the store answers before it is ready, without any detail that the client knows. */
const notReadyStatus: Plain = {
  code: status.UNAVAILABLE,
  message: 'Server Is Not Ready',
  details: { typeUrl: 'type.googleapis.com/google.protobuf.Empty', value: new Uint8Array() },
};

function expectedFields(expected: Expected): Plain {
  switch (expected.kind) {
    case 'exact':
      return { expectedStreamPosition: expected.revision };
    case 'no_stream':
      return { expectedNoStream: {} };
    case 'any':
      return { expectedAny: {} };
    case 'stream_exists':
      return { expectedStreamExists: {} };
    default: {
      const never: never = expected;
      throw new Error(`unknown expectation ${JSON.stringify(never)}`);
    }
  }
}

export function successMessage(decision: Extract<Decision, { kind: 'success' }>): Plain {
  return {
    ...(decision.revision === undefined ? { noStream: {} } : { currentRevision: decision.revision }),
    ...(decision.position === undefined ? { noPosition: {} } : { position: positionMessage(decision.position) }),
  };
}

function outcome(decision: Decision, stream: string, expected: Expected): Plain {
  switch (decision.kind) {
    case 'success':
      return { success: successMessage(decision) };
    case 'wrong': {
      const current =
        decision.actual === undefined ? { currentNoStream: {} } : { currentStreamRevision: decision.actual };
      return { error: errorStatus('WrongExpectedVersion', { ...current, ...expectedFields(expected) }) };
    }
    case 'deleted':
      return { error: errorStatus('StreamDeleted', { streamIdentifier: { streamName: stream } }) };
    default: {
      const never: never = decision;
      throw new Error(`unknown decision ${JSON.stringify(never)}`);
    }
  }
}

export interface BatchCall {
  frame(message: Plain): void;
  /** Call it when the client has sent everything. @returns true when the call must end once everything is answered */
  close(): void;
}

/** Serves one call. `fault` is asked once per append. */
export function createBatchCall(
  log: EventLog,
  peer: BatchPeer,
  fault: () => AppendFault | undefined,
  later: (ms: number, work: () => void) => void,
  hold: (answer: () => void) => void,
  clock: ServerClock,
): BatchCall {
  const pending = new Map<string, Pending>();

  function answer(correlationId: Plain | undefined, options: Plain | undefined, body: Plain): void {
    const identifier = asPlain(options?.['streamIdentifier']);
    peer.send({
      ...(correlationId === undefined ? {} : { correlationId }),
      ...body,
      ...(identifier === undefined ? {} : { streamIdentifier: identifier }),
    });
  }

  function settle(request: Pending): void {
    const { correlationId, options, stream, expected, events } = request;
    const write = (): Decision => log.append(stream, expected, events);
    const reply = (body: Plain): void => answer(correlationId, options, body);
    const timeout = (): void => reply({ error: errorStatus('Timeout', {}) });
    const wrong = fault();
    switch (wrong?.kind) {
      case undefined:
        return reply(outcome(write(), stream, expected));
      case 'silent':
        return;
      case 'answer_lost':
        write();
        return;
      case 'deadline':
        return timeout();
      case 'commit_timeout':
        later(wrong.laterMs, write);
        return timeout();
      case 'no_quorum':
        return later(wrong.ms, timeout);
      case 'not_ready':
        return reply({ error: notReadyStatus });
      case 'not_leader':
        return peer.end(notLeader(wrong.host, wrong.port));
      case 'no_position': {
        const decision = write();
        return reply(
          outcome(decision.kind === 'success' ? { ...decision, position: undefined } : decision, stream, expected),
        );
      }
      case 'cut':
        if (wrong.written) write();
        return peer.cut();
      case 'late':
        return later(wrong.ms, () => reply(outcome(write(), stream, expected)));
      case 'answer_late': {
        const body = outcome(write(), stream, expected);
        return later(wrong.ms, () => reply(body));
      }
      case 'held': {
        const body = outcome(write(), stream, expected);
        return hold(() => reply(body));
      }
      case 'end_call':
        return peer.end();
      case 'reset_call':
        if (wrong.written) write();
        return peer.end(callReset());
      default: {
        const never: never = wrong;
        throw new Error(`unknown fault ${JSON.stringify(never)}`);
      }
    }
  }

  function register(correlationId: Plain, key: string, options: Plain): Pending | undefined {
    const bad = (text: string): undefined => {
      answer(correlationId, options, { error: errorStatus('BadRequest', { message: text }) });
      return undefined;
    };
    const stream = streamName(options);
    if (stream === undefined) return bad('Object reference not set to an instance of an object.');
    if (stream === '') return bad("Value cannot be null. (Parameter 'value')");
    const expected = expectedOf(options, 'streamPosition');
    if (expected === undefined) {
      const what = 'EventStore.Client.Streams.BatchAppendReq+Types+Options+ExpectedStreamPositionOneofCase';
      return bad(`Status(StatusCode="InvalidArgument", Detail="'None' is not a valid ${what}")`);
    }
    const deadline = asPlain(options['deadline']);
    const until =
      deadline === undefined
        ? Infinity
        : Number(deadline['seconds']) * 1000 + Number(deadline['nanos'] ?? 0) / 1e6 - clock.now();
    if (until <= 0) {
      answer(correlationId, options, { error: errorStatus('Timeout', {}) });
      return undefined;
    }
    const answered = clock.after(Math.min(until, writeTimeoutMs), () => {
      pending.delete(key);
      answer(structuredUuid(key), options, { error: errorStatus('Timeout', {}) });
    });
    const request = { correlationId, stream, expected, options, events: [], bytes: 0, answered };
    pending.set(key, request);
    return request;
  }

  function frame(message: Plain): void {
    const correlationId = asPlain(message['correlationId']);
    const options = asPlain(message['options']);
    const bad = (text: string): void =>
      answer(correlationId, options, { error: errorStatus('BadRequest', { message: text }) });
    if (correlationId === undefined) return bad("Value cannot be null. (Parameter 'dto')");
    let key: string;
    try {
      key = uuidText(correlationId);
    } catch (error) {
      return bad((error as Error).message);
    }
    const request = pending.get(key) ?? (options === undefined ? undefined : register(correlationId, key, options));
    if (request === undefined) return;
    try {
      for (const proposed of (message['proposedMessages'] as readonly Plain[] | undefined) ?? []) {
        const event = proposedEvent(proposed);
        request.events.push(event);
        request.bytes += event.data.length;
      }
    } catch (error) {
      if (options === undefined) throw new Refusal(status.UNKNOWN, 'Exception was thrown by handler.');
      return bad((error as Error).message);
    }
    const drop = (): void => {
      request.answered();
      pending.delete(key);
    };
    if (request.bytes > maxAppendBytes) {
      drop();
      const error = errorStatus('MaximumAppendSizeExceeded', { maxAppendSize: maxAppendBytes });
      return answer(request.correlationId, request.options, { error });
    }
    if (message['isFinal'] !== true) return;
    drop();
    settle(request);
  }

  return {
    frame,
    close() {
      for (const { answered } of pending.values()) answered();
      pending.clear();
    },
  };
}
