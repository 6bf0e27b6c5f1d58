/**
 * The client of the API, typed by the OpenAPI document (`openapi.gen.ts`, made by `npm run types`). The browser sends
 * the cookie of the sign-in by itself. A refusal becomes a `Refusal` with the service's own sentence.
 */
import createClient from 'openapi-fetch';
import type { components, paths } from './openapi.gen.js';

export type Schemas = components['schemas'];

export const api = createClient<paths>({ baseUrl: '' });

/** How long reads after a command wait for it: behind a balancer, another instance may answer them. */
const ownWritesMs = 10_000;
let written: { readonly position: string; readonly at: number } | undefined;

/** By how much the clock of the service is ahead of this browser's, which may be wrong by hours. */
let aheadMs = 0;

/** The time of the service, by which everything that it says is dated. */
export const serviceNow = (): number => Date.now() + aheadMs;

api.use({
  onRequest({ request }) {
    if (request.method === 'GET' && written !== undefined && Date.now() - written.at < ownWritesMs) {
      request.headers.set('x-min-position', written.position);
    }
    return request;
  },
  onResponse({ request, response }) {
    const position = response.headers.get('x-position');
    if (request.method !== 'GET' && position !== null) written = { position, at: Date.now() };
    const said = Date.parse(response.headers.get('date') ?? '');
    if (!Number.isNaN(said)) aheadMs = said - Date.now();
    return undefined;
  },
  onError: () => unanswered(),
});

/** A browser tells only that there was no answer. */
const unanswered = (): Refusal =>
  new Refusal({ status: 0, code: 'unreachable', sentence: 'the service does not answer', requestId: null });

interface RefusalFacts {
  /** 0 without an answer. */
  readonly status: number;
  readonly code: string;
  readonly sentence: string;
  readonly requestId: string | null;
}

/** A refusal, in the words of the service. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  /** Without the code. */
  readonly sentence: string;
  /** The service's log holds the cause under this id. */
  readonly requestId: string | null;

  constructor({ status, code, sentence, requestId }: RefusalFacts) {
    super(sentence);
    this.status = status;
    this.code = code;
    this.sentence = sentence;
    this.requestId = requestId;
  }
}

export interface Answer<T> {
  readonly data?: { readonly data: T };
  readonly error?: { readonly error: string | null };
  readonly response: Response;
}

/** What a command answered. */
export interface Done<T> {
  readonly data: T;
  /** The audit entry has it too. */
  readonly requestId: string;
  /** The version of the resource, for `If-Match`; null where the answer has none. */
  readonly etag: string | null;
}

/** The data of a success. @throws Refusal */
export async function dataOf<T>(asked: Promise<Answer<T>>): Promise<T> {
  return (await doneOf(asked)).data;
}

/** Like `dataOf`, with what undo and `If-Match` need. @throws Refusal */
export async function doneOf<T>(asked: Promise<Answer<T>>): Promise<Done<T>> {
  const { data, error, response } = await asked.catch((failure: unknown) => {
    // An answer that breaks off counts as none.
    throw failure instanceof Refusal ? failure : unanswered();
  });
  const requestId = response.headers.get('x-request-id');
  if (data !== undefined) return { data: data.data, requestId: requestId ?? '', etag: response.headers.get('etag') };
  const [, code = 'internal', sentence = 'the answer is not one of this service'] =
    /^([a-z_]+): (.*)$/s.exec(error?.error ?? '') ?? [];
  throw new Refusal({ status: response.status, code, sentence, requestId });
}

/** A key under which a repeated POST writes nothing. Works without TLS too, where `crypto.randomUUID` does not. */
export const newIdempotencyKey = (): string => randomHex(16);

export const randomHex = (bytes: number): string =>
  [...crypto.getRandomValues(new Uint8Array(bytes))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
