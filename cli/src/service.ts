/**
 * The typed client of the service's OpenAPI document, with token, idempotency keys, failures and read-your-writes. A refusal becomes a `Failure`
 * with the service's own sentence.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { env } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import createClient, { type Client } from 'openapi-fetch';
import type { components, paths } from './api/openapi.gen.js';
import { requireSafe } from './contexts.js';
import { Failure, exitCodes, usage } from './exit.js';

export type { paths };
export type Schemas = components['schemas'];
export type Api = Client<paths>;

export interface Access {
  readonly server: string;
  readonly token?: string;
  readonly insecure?: boolean | undefined;
  readonly caFile?: string | undefined;
}

/** Checks where the token may go, and creates the client. @throws Failure usage */
export async function connect({ server, token, insecure, caFile }: Access): Promise<Api> {
  requireSafe(server, insecure);
  if (caFile !== undefined) await trust(caFile);
  // Followed, a redirect would turn a POST into a GET, and might take a password to plain http.
  const api = createClient<paths>({ baseUrl: server, redirect: 'manual' });
  let position: string | null = null;
  api.use({
    onRequest({ request }) {
      if (token !== undefined) {
        request.headers.set('authorization', `Bearer ${token}`);
        if (request.method === 'POST' && !request.headers.has('idempotency-key'))
          request.headers.set('idempotency-key', randomUUID());
      }
      if (position !== null && request.method === 'GET') request.headers.set('x-min-position', position);
      return request;
    },
    onResponse({ response }) {
      // Such as the sign-in page of a proxy.
      if (response.ok && !answered.test(response.headers.get('content-type') ?? ''))
        throw refusalOf(response, undefined);
      position = response.headers.get('x-position') ?? position;
      return undefined;
    },
    onError: ({ error }) => unreachableService(server, error),
  });
  return api;
}

/** The types of the service's answers. */
const answered = /^(application\/json|text\/event-stream)(;|$)/;

/** The failure of a request that got no answer. */
function unreachableService(server: string, error: unknown): Failure {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = (cause as NodeJS.ErrnoException).code;
  const text =
    code === 'ERR_SSL_WRONG_VERSION_NUMBER'
      ? `this port speaks http; expected ${server.replace('https:', 'http:')}`
      : code === 'UND_ERR_SOCKET' && server.startsWith('http:')
        ? `other side closed; expected ${server.replace('http:', 'https:')}, if this port speaks https`
        : cause instanceof Error
          ? cause.message || code
          : String(cause);
  return new Failure(exitCodes.unreachable, `${server} is out of reach: ${text}`);
}

/** Trusts the certificates of a file, in addition to Node's own. */
async function trust(path: string): Promise<void> {
  let ca: string;
  try {
    ca = readFileSync(path, 'utf8');
  } catch (error) {
    throw usage(`--ca-file ${path}: ${(error as Error).message}`);
  }
  const { Agent, setGlobalDispatcher } = await import('undici');
  const { rootCertificates } = await import('node:tls');
  setGlobalDispatcher(new Agent({ connect: { ca: [...rootCertificates, ca] } }));
}

interface Answer<B> {
  readonly data?: B | undefined;
  readonly error?: unknown;
  readonly response: Response;
}

export interface Done<T> {
  readonly data: T;
  /** For `If-Match`; null where the answer has none. */
  readonly etag: string | null;
}

/** The data of a success. @throws Failure */
export async function dataOf<T>(asked: Promise<Answer<{ readonly data: T }>>): Promise<T> {
  return (await bodyOf(asked)).body.data;
}

/** @throws Failure */
export async function doneOf<T>(asked: Promise<Answer<{ readonly data: T }>>): Promise<Done<T>> {
  const { body, response } = await bodyOf(asked);
  return { data: body.data, etag: response.headers.get('etag') };
}

/** A success as it came. @throws Failure */
export async function bodyOf<B>(asked: Promise<Answer<B>>): Promise<{ readonly body: B; readonly response: Response }> {
  const { data: body, error, response } = await asked.catch(brokenOff);
  if (!response.ok || body === undefined) throw refusalOf(response, error);
  return { body, response };
}

/** An answer that ends half way says nothing. @throws Failure */
export function brokenOff(error: unknown): never {
  if (error instanceof Failure) throw error;
  throw new Failure(exitCodes.unreachable, `the answer broke off: ${error instanceof Error ? error.message : error}`);
}

export function refusalOf({ status, headers, url }: Response, body: unknown): Failure {
  const location = headers.get('location');
  const given =
    typeof body === 'object' && body !== null && 'error' in body && typeof body.error === 'string'
      ? body.error
      : `the answer is ${status}${location === null ? '' : ` to ${location}`}, and not of this service`;
  const retryAfterMs = Number(headers.get('retry-after') ?? 0) * 1_000 || 0;
  const code = status === 401 ? exitCodes.notSignedIn : exitCodes.refused;
  // A wrong password needs no other token.
  const isToken = status === 401 && !url.endsWith('/api/auth/login');
  const sentence = isToken ? `${given.replace(headerWanted, 'this token is not valid')}; ${signInAgain()}` : given;
  return new Failure(code, sentence, { requestId: headers.get('x-request-id'), status, retryAfterMs });
}

/** The service's words for programs, which send headers; a person has a token. */
const headerWanted = /expected a valid token in the header .*$/;

/** What to do about a token that is not valid. */
const signInAgain = (): string =>
  (env['SVC_TOKEN'] ?? '') === '' ? 'run svcctl login' : 'set SVC_TOKEN to another token';

const againAfterMs = [500, 1_000, 2_000, 4_000, 8_000];
const longestPauseMs = 30_000;

/** The service is busy or not ready: the same request may succeed soon. */
export const isBusy = (error: Failure): boolean => error.status === 429 || error.status === 503;

/** Busy, or out of reach: an instance that restarts is both. */
export const isAway = (error: Failure): boolean => isBusy(error) || error.exitCode === exitCodes.unreachable;

/** Retries for 15 seconds, or longer if the service asks for it. @param passes whether a failure may pass @throws Failure the last one */
export async function patiently<T>(asked: () => Promise<T>, passes: (error: Failure) => boolean): Promise<T> {
  for (const pauseMs of againAfterMs) {
    try {
      return await asked();
    } catch (error) {
      if (!(error instanceof Failure) || !passes(error)) throw error;
      await sleep(Math.min(longestPauseMs, Math.max(pauseMs, error.retryAfterMs)));
    }
  }
  return asked();
}
