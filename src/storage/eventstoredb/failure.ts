/**
 * What an error of the client means: whether an append may have been written, and whether the client is still usable.
 * Decides by `type` and `code`, and by the text only where the client gives nothing else. Pure. A raw error with code
 * 14 comes from the capability probe before the append; "not ready" is an unknown error with a text; after a failed
 * discovery a client never works again.
 */
import { ErrorType, NO_STREAM, type CommandError, type WrongExpectedVersionError } from '@eventstore/db-client';
import { errorText } from '../../kernel/errors.js';

export type AppendFailure =
  | { readonly kind: 'conflict'; readonly actual: number | 'no_stream' }
  /** Certainly not written, and worth another try. With `discard`, this client never works again. */
  | { readonly kind: 'not_written'; readonly cause: string; readonly discard: boolean }
  /** Certainly not written, and another try would fail the same way: into this stream, or with these events. */
  | { readonly kind: 'refused'; readonly what: 'stream' | 'append'; readonly cause: string }
  /** Possibly written, now or later. */
  | { readonly kind: 'unknown'; readonly cause: string };

const field = (error: unknown, name: string): unknown =>
  typeof error === 'object' && error !== null ? (error as Record<string, unknown>)[name] : undefined;

const messageOf = (error: unknown): string => {
  const message = field(error, 'message');
  return typeof message === 'string' ? message : '';
};

/** A text without secrets: the client's errors contain no data of events. */
export function failureText(error: unknown): string {
  const type = field(error, 'type');
  const text = messageOf(error);
  if (typeof type === 'string') return text === '' ? type : `${type}: ${text}`;
  return errorText(error);
}

export const isFailedDiscovery = (error: unknown): boolean => messageOf(error).startsWith('Failed to discover');
export const isNotLeader = (error: unknown): boolean => field(error, 'type') === ErrorType.NOT_LEADER;
export const isMissingStream = (error: unknown): boolean => field(error, 'type') === ErrorType.STREAM_NOT_FOUND;
export const isTombstoned = (error: unknown): boolean => field(error, 'type') === ErrorType.STREAM_DELETED;
/**
 * How servers up to 23.10 drop a live subscription, for instance after one large append. Happens in normal operation.
 */
export const isTooSlow = (error: unknown): boolean =>
  field(error, 'type') === ErrorType.TIMEOUT && /too slow/i.test(messageOf(error));
/** How servers refuse a start position that no record begins at: first the text of 23.10, then of later ones. */
export const isForeignPosition = (error: unknown): boolean =>
  field(error, 'type') === ErrorType.UNKNOWN &&
  /Exception was thrown by handler|invalid position/i.test(messageOf(error));

/** The client's own errors have a type; errors that it passes on do not. */
const isClientError = (error: unknown): error is CommandError => typeof field(error, 'type') === 'string';

const unavailableCode = 14;
const notReady = /Server Is (Not Ready|Busy|Too Busy)/i;
const neverSent = /No connection established|ECONNREFUSED|EHOSTUNREACH|ENOTFOUND|Name resolution failed/i;

function conflict(error: WrongExpectedVersionError): AppendFailure {
  const { actualVersion } = error;
  return { kind: 'conflict', actual: actualVersion === NO_STREAM ? 'no_stream' : Number(actualVersion) };
}

/**
 * @param alone no other append was in flight on the client. The client rejects all of them with the error of one, so
 * only then does "never sent" or "not the leader" apply to this append
 */
export function appendFailure(error: unknown, alone: boolean): AppendFailure {
  const cause = failureText(error);
  const unlessShared = (failure: AppendFailure): AppendFailure => (alone ? failure : { kind: 'unknown', cause });
  if (isFailedDiscovery(error)) return { kind: 'not_written', cause, discard: true };
  if (!isClientError(error)) {
    // Only the capability probe, which comes before the append, fails with an unconverted error with a code. The client
    // repeats the probe when the server was unreachable; it caches any other answer and fails every append with it.
    const code = field(error, 'code');
    return typeof code === 'number'
      ? { kind: 'not_written', cause, discard: code !== unavailableCode }
      : { kind: 'unknown', cause };
  }
  switch (error.type) {
    case ErrorType.WRONG_EXPECTED_VERSION:
      return conflict(error);
    case ErrorType.NOT_LEADER:
      return unlessShared({ kind: 'not_written', cause, discard: false });
    case ErrorType.UNAVAILABLE:
      if (notReady.test(cause)) return { kind: 'not_written', cause, discard: false };
      return neverSent.test(cause)
        ? unlessShared({ kind: 'not_written', cause, discard: false })
        : { kind: 'unknown', cause };
    case ErrorType.UNKNOWN:
      if (notReady.test(cause)) return { kind: 'not_written', cause, discard: false };
      return /Could not recognize BadRequest|RESOURCE_EXHAUSTED/.test(cause)
        ? { kind: 'refused', what: 'append', cause }
        : { kind: 'unknown', cause };
    case ErrorType.STREAM_DELETED:
    case ErrorType.ACCESS_DENIED:
      return { kind: 'refused', what: 'stream', cause };
    case ErrorType.MAXIMUM_APPEND_SIZE_EXCEEDED:
    case ErrorType.INVALID_ARGUMENT:
    case ErrorType.MISSING_REQUIRED_METADATA_PROPERTY:
      return { kind: 'refused', what: 'append', cause };
    default:
      return { kind: 'unknown', cause };
  }
}
