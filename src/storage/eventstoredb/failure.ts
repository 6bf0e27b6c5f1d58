/**
 * What an error of the client means: whether an append may have been written, and whether another try is worthwhile.
 * Decides by `type`, and by the text only where the client gives nothing else. Pure.
 */
import { ErrorType, NO_STREAM, type CommandError, type WrongExpectedVersionError } from '@eventstore/db-client';
import { errorText } from '../../kernel/errors.js';

export type AppendFailure =
  | { readonly kind: 'conflict'; readonly actual: number | 'no_stream' }
  /** Certainly not written, and worth another try. */
  | { readonly kind: 'not_written'; readonly cause: string }
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

const isFailedDiscovery = (error: unknown): boolean => messageOf(error).startsWith('Failed to discover');
/** The node knows no leader, for instance because it is cut off from the others. */
export const isNotReady = (error: unknown): boolean =>
  field(error, 'type') === ErrorType.UNAVAILABLE && notReady.test(messageOf(error));
/** The deadline of a call has passed. */
export const isUnanswered = (error: unknown): boolean => field(error, 'type') === ErrorType.DEADLINE_EXCEEDED;
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

const notReady = /Server Is (Not Ready|Busy|Too Busy)/i;
const neverSent = /No connection established|ECONNREFUSED|EHOSTUNREACH|ENOTFOUND|Name resolution failed/i;

function conflict(error: WrongExpectedVersionError): AppendFailure {
  const { actualVersion } = error;
  return { kind: 'conflict', actual: actualVersion === NO_STREAM ? 'no_stream' : Number(actualVersion) };
}

export function appendFailure(error: unknown): AppendFailure {
  const cause = failureText(error);
  if (isFailedDiscovery(error)) return { kind: 'not_written', cause };
  if (!isClientError(error)) return { kind: 'unknown', cause };
  switch (error.type) {
    case ErrorType.WRONG_EXPECTED_VERSION:
      return conflict(error);
    case ErrorType.NOT_LEADER:
      return { kind: 'not_written', cause };
    case ErrorType.UNAVAILABLE:
      return isNotReady(error) || neverSent.test(cause) ? { kind: 'not_written', cause } : { kind: 'unknown', cause };
    case ErrorType.UNKNOWN:
      return /RESOURCE_EXHAUSTED/.test(cause) ? { kind: 'refused', what: 'append', cause } : { kind: 'unknown', cause };
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
