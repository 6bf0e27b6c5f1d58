/** A REST server over the fake control plane, called through inject: short calls for contract tests. */
import type { LightMyRequestResponse } from 'fastify';
import { buildRest } from '../../src/transport/rest/build.js';
import type { RestApp, RestOptions } from '../../src/transport/rest/build.js';
import { createFakeControlPlane } from './fake-control-plane.js';
import type { FakeControlPlane } from './fake-control-plane.js';

export interface Call {
  readonly role?: 'admin' | 'operator' | 'viewer' | 'nobody';
  /** Sent as JSON; a string or bytes as they are. */
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

/** Parsed JSON: tests look into it freely. */
export type JsonData = ReturnType<typeof JSON.parse>;

export interface RestUnderTest {
  readonly app: RestApp;
  readonly plane: FakeControlPlane;
  call(method: string, url: string, call?: Call): Promise<LightMyRequestResponse>;
  /** As `call`, for the data of a success. */
  data(method: string, url: string, call?: Call): Promise<JsonData>;
}

export async function startRest(options: Partial<RestOptions> = {}): Promise<RestUnderTest> {
  const plane = createFakeControlPlane();
  const app = await buildRest(plane.deps, { version: '0.0.0', corsOrigins: [], trustedProxies: [], ...options });
  async function call(method: string, url: string, { role = 'admin', body, headers = {} }: Call = {}) {
    const raw = typeof body === 'string' || Buffer.isBuffer(body);
    return app.inject({
      method: method as 'GET',
      url,
      headers: {
        ...(role === 'nobody' ? {} : { authorization: `Bearer ${plane.tokenOf(role)}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { payload: raw ? body : JSON.stringify(body) }),
    });
  }
  return {
    app,
    plane,
    call,
    async data(method, url, options_) {
      const answer = await call(method, url, options_);
      const parsed = answer.json();
      if (parsed.success !== true) throw new Error(`${method} ${url}: ${answer.statusCode} ${answer.body}`);
      return parsed.data;
    },
  };
}
