/**
 * Interprets the client's errors: whether an append may have been written, and whether a retry is worthwhile. Decides
 * by `type`, and by the text only where the client gives nothing else.
 *
 * Also tells a wrong password, missing permissions and bad certificates from a server that is away. The client package
 * does not: a failed discovery loses its reason, and a server that requires TLS merely closes the connection. So this
 * file tries its own handshake and sends nothing over it.
 */
import { connect, type ConnectionOptions } from 'node:tls';
import { ErrorType, NO_STREAM, type CommandError, type WrongExpectedVersionError } from '@eventstore/db-client';
import { timedOut, withDeadline } from '../../kernel/background.js';
import { errorText } from '../../kernel/errors.js';
import type { AppendOutcome } from '../event-store.js';
import { field, StoreAccessError, tlsError } from '../store-access.js';
import type { StoreAddress } from './address.js';

const messageOf = (error: unknown): string => {
  const message = field(error, 'message');
  return typeof message === 'string' ? message : '';
};

/** A text without secrets: the client's errors contain no event data. */
export function failureText(error: unknown): string {
  const type = field(error, 'type');
  const text = messageOf(error);
  if (typeof type === 'string') return text === '' ? type : `${type}: ${text}`;
  return errorText(error);
}

const isFailedDiscovery = (error: unknown): boolean => messageOf(error).startsWith('Failed to discover');
/** The node knows no leader, for example because it is cut off from the others. */
export const isNotReady = (error: unknown): boolean =>
  field(error, 'type') === ErrorType.UNAVAILABLE && notReady.test(messageOf(error));
/** The deadline of a call has passed. */
export const isUnanswered = (error: unknown): boolean => field(error, 'type') === ErrorType.DEADLINE_EXCEEDED;
export const isNotLeader = (error: unknown): boolean => field(error, 'type') === ErrorType.NOT_LEADER;
export const isMissingStream = (error: unknown): boolean => field(error, 'type') === ErrorType.STREAM_NOT_FOUND;
export const isTombstoned = (error: unknown): boolean => field(error, 'type') === ErrorType.STREAM_DELETED;
/** How servers up to 23.10 drop a live subscription, for example after one large append. Normal in operation. */
export const isTooSlow = (error: unknown): boolean =>
  field(error, 'type') === ErrorType.TIMEOUT && /too slow/i.test(messageOf(error));
/** How servers refuse a start position at which no record begins: first the text of 23.10, then that of later ones. */
export const isForeignPosition = (error: unknown): boolean =>
  field(error, 'type') === ErrorType.UNKNOWN &&
  /Exception was thrown by handler|invalid position/i.test(messageOf(error));

/** The client's own errors have a type; errors that it passes through do not. */
const isClientError = (error: unknown): error is CommandError => typeof field(error, 'type') === 'string';

const notReady = /Server Is (Not Ready|Busy|Too Busy)/i;
const neverSent = /No connection established|ECONNREFUSED|EHOSTUNREACH|ENOTFOUND|Name resolution failed/i;

function conflict(error: WrongExpectedVersionError): AppendOutcome {
  const { actualVersion } = error;
  return { kind: 'conflict', actual: actualVersion === NO_STREAM ? 'no_stream' : Number(actualVersion) };
}

/** `unavailable`: worth a retry. */
export function appendFailure(error: unknown): AppendOutcome {
  const cause = failureText(error);
  if (isFailedDiscovery(error)) return { kind: 'unavailable', cause };
  if (!isClientError(error)) return { kind: 'unknown', cause };
  switch (error.type) {
    case ErrorType.WRONG_EXPECTED_VERSION:
      return conflict(error);
    case ErrorType.NOT_LEADER:
      return { kind: 'unavailable', cause };
    case ErrorType.UNAVAILABLE:
      return isNotReady(error) || neverSent.test(cause) ? { kind: 'unavailable', cause } : { kind: 'unknown', cause };
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

const store = { name: 'the event store', variable: 'SVC_EVENTSTORE_URL' } as const;
const unauthenticated = 16;

export const isAccessDenied = (error: unknown): boolean => field(error, 'type') === ErrorType.ACCESS_DENIED;

/** The server's own complaint about access; undefined for any other error. */
export function accessError(error: unknown): StoreAccessError | undefined {
  if (!isAccessDenied(error)) return undefined;
  const { variable } = store;
  const sentence =
    field(error, 'code') === unauthenticated
      ? `the event store does not accept the user name or password in ${variable}: correct one of the two sides`
      : `the user in ${variable} has too few permissions in the event store: make it a member of the group $admins`;
  return new StoreAccessError(sentence, error);
}

type Handshake = { readonly kind: 'done' } | { readonly kind: 'failed'; readonly error: unknown };

/** @returns undefined when the server neither completes nor refuses it in time */
async function handshake(options: ConnectionOptions, timeoutMs: number): Promise<Handshake | undefined> {
  const socket = connect({ ...options, ALPNProtocols: ['h2'] });
  const outcome = new Promise<Handshake>((resolve) => {
    socket.once('secureConnect', () => resolve({ kind: 'done' }));
    socket.on('error', (error) => resolve({ kind: 'failed', error }));
    socket.once('close', () => resolve({ kind: 'failed', error: undefined }));
  });
  try {
    const first = await withDeadline(outcome, timeoutMs);
    return first === timedOut ? undefined : first;
  } finally {
    socket.destroy();
  }
}

/** Tries a handshake with each host until one gives a reason. @returns undefined when nothing is wrong with TLS */
export async function handshakeError(
  { hosts, tls, credentials }: StoreAddress,
  timeoutMs: number,
): Promise<StoreAccessError | undefined> {
  const { rootCertificate, userCertFile, userKeyFile } = credentials;
  for (const { address, port } of hosts) {
    const outcome = await handshake(
      {
        host: address.replaceAll(/[[\]]/g, ''),
        port,
        ...(tls ? {} : { rejectUnauthorized: false }),
        ...(rootCertificate === undefined ? {} : { ca: rootCertificate }),
        ...(userCertFile === undefined ? {} : { cert: userCertFile }),
        ...(userKeyFile === undefined ? {} : { key: userKeyFile }),
      },
      timeoutMs / hosts.length,
    );
    if (outcome === undefined) continue;
    if (tls && outcome.kind === 'done') return undefined;
    if (!tls && outcome.kind === 'done') {
      return new StoreAccessError(`the event store answers only with TLS: leave tls=false out of ${store.variable}`);
    }
    const found = tls && outcome.kind === 'failed' ? tlsError(outcome.error, store) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}
