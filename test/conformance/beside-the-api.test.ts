/** The paths beside /api: `docs/contract/rest.md#beside-api`. */
import { describe, expect, it } from 'vitest';
import { sharedService } from './support/running.js';

const shared = sharedService();
const get = (path: string) => shared.api.send('GET', path, { token: null });

interface OpenApi {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Record<string, unknown>>>>>;
}

describe('beside /api', () => {
  it('/healthz and /readyz answer 200 without a token', async () => {
    expect((await get('/healthz')).status).toBe(200);
    expect((await get('/readyz')).status).toBe(200);
  });

  it('/metrics answers in the Prometheus text format', async () => {
    const answer = await get('/metrics');
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toMatch(/^text\/plain|^application\/openmetrics-text/);
    for (const line of answer.text.split('\n').filter((text) => text !== '' && !text.startsWith('#'))) {
      expect(line).toMatch(/^[a-zA-Z_:][a-zA-Z0-9_:]*(\{.*\})? [-+0-9.eE]+(Inf|NaN)?( \d+)?$|Nan$/i);
    }
  });

  it('/openapi.json is OpenAPI 3.1 and describes every path of this release with its methods', async () => {
    const answer = await get('/openapi.json');
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
    const document = JSON.parse(answer.text) as OpenApi;
    expect(document.openapi).toMatch(/^3\.1\./);
    for (const [path, methods] of Object.entries({
      '/api/auth/login': ['post'],
      '/api/auth/me': ['get', 'put'],
      '/api/nodes': ['get', 'post'],
      '/api/nodes/{id}': ['delete', 'get', 'put'],
      '/api/nodes/{id}/psk': ['post'],
      '/api/nodes/{id}/config': ['get', 'post'],
      '/api/l4-upstreams': ['get', 'post'],
      '/api/l4-upstreams/{id}': ['delete', 'get', 'put'],
      '/api/l4-chains': ['get', 'post'],
      '/api/l4-chains/{id}': ['delete', 'get', 'put'],
      '/api/l4-chains/{id}/deploy': ['post'],
      '/api/l4-chains/{id}/deployments': ['get'],
      '/api/l4-chains/{id}/plan': ['get'],
      '/api/settings/connectivity': ['get', 'put'],
      '/api/audit': ['get'],
    })) {
      const described = document.paths[path];
      expect(described, path).toBeDefined();
      expect(
        Object.keys(described!)
          .filter((key) => key !== 'parameters')
          .toSorted(),
        path,
      ).toEqual(methods);
    }
  });

  it('/docs answers', async () => {
    expect([200, 301, 302]).toContain((await get('/docs')).status);
  });

  it('a token is needed for every method under /api except the login, including HEAD and OPTIONS', async () => {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      for (const path of ['/api/nodes', '/api/audit', '/api/settings/connectivity', '/api//nodes', '/api/auth/me']) {
        const answer = await shared.api.send(method, path, { token: null });
        expect(`${method} ${path} ${answer.status}`).toBe(`${method} ${path} 401`);
      }
    }
  });
});
