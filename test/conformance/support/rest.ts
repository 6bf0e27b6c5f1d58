/**
 * A REST client written from the contract alone, over node:http, so that bodies, headers and paths can be anything. It
 * checks every answer under /api for what the contract requires of all: the envelope, the form of errors and times.
 * It shares no code with the service, unlike the client of the demo.
 */
import { Agent, request, type IncomingHttpHeaders } from 'node:http';
import { expect } from 'vitest';

export interface Sent {
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent unchanged, with content type application/json unless `headers` has another. */
  readonly raw?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** Null: no token is sent. */
  readonly token?: string | null;
}

export interface Answer<T> {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** `data` of the envelope; its type is not checked. */
  readonly data: T;
  readonly error: string | null;
}

export interface Api {
  readonly url: string;
  readonly token: string;
  send<T = unknown>(method: string, path: string, sent?: Sent): Promise<Answer<T>>;
  /** Returns `data` of a success; fails the test with the error otherwise. */
  ok<T = unknown>(method: string, path: string, json?: unknown, headers?: Readonly<Record<string, string>>): Promise<T>;
  close(): void;
}

const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const codes: Readonly<Record<number, string>> = {
  400: 'invalid_request',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  409: 'conflict',
  412: 'precondition_failed',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
  429: 'rate_limited',
  500: 'internal',
  503: 'unavailable',
};

function checkTimes(value: unknown, path: string): void {
  if (Array.isArray(value)) return value.forEach((item, index) => checkTimes(item, `${path}[${index}]`));
  if (value === null || typeof value !== 'object') return;
  for (const [key, inner] of Object.entries(value)) {
    if ((key === 'at' || key.endsWith('_at')) && typeof inner === 'string') {
      expect(inner, `${path}.${key}`).toMatch(time);
    }
    checkTimes(inner, `${path}.${key}`);
  }
}

/** Checks what the contract requires of every answer under /api. */
function checkEnvelope(where: string, status: number, headers: IncomingHttpHeaders, text: string): void {
  expect(headers['content-type'], where).toMatch(/^application\/json/);
  expect(headers['x-request-id'], where).toEqual(expect.stringMatching(/^[\x21-\x7e]{1,128}$/));
  const body = JSON.parse(text) as Record<string, unknown>;
  expect(Object.keys(body).toSorted(), where).toEqual(['data', 'error', 'success']);
  if (status < 300) {
    expect([200, 201], where).toContain(status);
    expect(body.success, where).toBe(true);
    expect(body.error, where).toBeNull();
    expect(body.data, where).toEqual(expect.any(Object));
    checkTimes(body.data, where);
  } else {
    expect(body.success, where).toBe(false);
    expect(body.data, where).toBeNull();
    expect(body.error, where).toMatch(new RegExp(`^${codes[status]}: \\S`));
  }
}

/** A keep-alive client of one service. */
export function createApi(url: string, token = ''): Api {
  const agent = new Agent({ keepAlive: true });
  const send = <T>(method: string, path: string, sent: Sent = {}): Promise<Answer<T>> => {
    const body = sent.json === undefined ? sent.raw : JSON.stringify(sent.json);
    const bearer = sent.token === undefined ? token : sent.token;
    const headers: Record<string, string> = {
      ...(bearer ? { authorization: `Bearer ${bearer}` } : {}),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      'content-length': String(body === undefined ? 0 : Buffer.byteLength(body)),
      ...sent.headers,
    };
    if (headers['content-type'] === '') delete headers['content-type'];
    return new Promise((resolve, reject) => {
      const outgoing = request(url + path, { method, headers, agent, timeout: 35_000 }, (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('error', reject);
        incoming.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          const status = incoming.statusCode ?? 0;
          try {
            let parsed: { data?: T; error?: string | null } = {};
            if (path.startsWith('/api') && method !== 'HEAD') {
              checkEnvelope(`${method} ${path} → ${status} ${text.slice(0, 300)}`, status, incoming.headers, text);
              parsed = JSON.parse(text) as typeof parsed;
            }
            resolve({
              status,
              headers: incoming.headers,
              text,
              data: parsed.data as T,
              error: parsed.error ?? null,
            });
          } catch (error) {
            reject(error instanceof Error ? error : new Error(String(error)));
          }
        });
      });
      outgoing.on('timeout', () => outgoing.destroy(new Error(`${method} ${path}: no answer`)));
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  };
  return {
    url,
    token,
    send,
    async ok<T>(method: string, path: string, json?: unknown, headers?: Readonly<Record<string, string>>) {
      const answer = await send<T>(method, path, {
        ...(json === undefined ? {} : { json }),
        ...(headers === undefined ? {} : { headers }),
      });
      if (answer.error !== null) throw new Error(`${method} ${path} → ${answer.status} ${answer.error}`);
      return answer.data;
    },
    close: () => agent.destroy(),
  };
}

/** Expects an error with this status whose message contains each of these strings. */
export function refused(answer: Answer<unknown>, status: number, ...named: readonly string[]): void {
  expect(`${answer.status} ${answer.text}`).toMatch(new RegExp(`^${status} `));
  for (const name of named) expect(answer.error).toContain(name);
}
