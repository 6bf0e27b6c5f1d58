/**
 * Tells a wrong password, missing rights and certificates from a server that is away. The client package does not: a
 * failed discovery loses its reason, and a server that wants TLS merely closes the connection. So a handshake of our own
 * is tried, with nothing sent.
 */
import { connect, type ConnectionOptions } from 'node:tls';
import { ErrorType } from '@eventstore/db-client';
import { timedOut, withDeadline } from '../../kernel/background.js';
import { StoreTroubleError, tlsTrouble } from '../store-trouble.js';
import type { StoreAddress } from './address.js';

const store = { name: 'the event store', variable: 'SVC_EVENTSTORE_URL' } as const;
const unauthenticated = 16;

const field = (error: unknown, name: string): unknown =>
  typeof error === 'object' && error !== null ? (error as Record<string, unknown>)[name] : undefined;

export const isAccessDenied = (error: unknown): boolean => field(error, 'type') === ErrorType.ACCESS_DENIED;

/** The trouble that the server itself told of; undefined for another error. */
export function rightsTrouble(error: unknown): StoreTroubleError | undefined {
  if (!isAccessDenied(error)) return undefined;
  const { variable } = store;
  const sentence =
    field(error, 'code') === unauthenticated
      ? `the event store does not accept the user name or password in ${variable}: correct one of the two sides`
      : `the user in ${variable} has too few rights in the event store: make it a member of the group $admins`;
  return new StoreTroubleError(sentence, error);
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

/** Tries a handshake with each host until one tells something. @returns undefined when nothing is wrong with TLS */
export async function handshakeTrouble(
  { hosts, tls, credentials }: StoreAddress,
  timeoutMs: number,
): Promise<StoreTroubleError | undefined> {
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
      return new StoreTroubleError(`the event store answers only with TLS: leave tls=false out of ${store.variable}`);
    }
    const trouble = tls && outcome.kind === 'failed' ? tlsTrouble(outcome.error, store) : undefined;
    if (trouble !== undefined) return trouble;
  }
  return undefined;
}
