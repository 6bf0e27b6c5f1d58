/** A small REST client for the service: knows the envelope and the token. */

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Envelope;
}

export interface Envelope {
  readonly success: boolean;
  readonly data: Record<string, unknown> | null;
  readonly error: string | null;
}

export interface RestClient {
  /** Sends a request once and returns the answer, whatever its status. */
  send(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  /** Sends a request and returns its `data`. @throws Error with status and message unless the request succeeds */
  call<T>(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<T>;
}

/** @param token absent for a client that only signs in */
export function createRestClient(baseUrl: string, token?: string, timeoutMs = 40_000): RestClient {
  async function send(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const response = await fetch(baseUrl + path, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === '' ? empty : (JSON.parse(text) as Envelope),
    };
  }
  return clientOf(send);
}

/** @param send sends a request once, with what the service asks of it */
export const clientOf = (send: RestClient['send']): RestClient => ({
  send,
  async call<T>(...request: Parameters<RestClient['send']>): Promise<T> {
    const [method, path] = request;
    const { status, body } = await send(...request);
    if (!body.success) throw new Error(`${method} ${path} answered ${status}: ${body.error}`);
    return body.data as T;
  },
});

const empty: Envelope = { success: false, data: null, error: null };

/** Signs in. @throws Error when refused */
export async function signIn(baseUrl: string, username: string, password: string): Promise<RestClient> {
  const { token } = await createRestClient(baseUrl).call<{ token: string }>('POST', '/api/auth/login', {
    username,
    password,
  });
  return createRestClient(baseUrl, token);
}
