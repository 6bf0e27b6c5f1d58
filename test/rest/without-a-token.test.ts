/**
 * What anybody may ask for: limited by address where it is costly, and made once.
 * `docs/contract/configuration.md#configuration` and `docs/contract/rest.md#beside-api`.
 */
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createManualClock } from '../support/manual-clock.js';
import { startRest, type RestFixture } from '../support/rest-fixture.js';

const clock = createManualClock();
let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest({}, clock);
});
afterAll(() => rest.close());

const get = (url: string, headers: Readonly<Record<string, string>> = {}, remoteAddress = '192.0.2.1') =>
  rest.app.inject({ method: 'GET', url, headers, remoteAddress });

describe('metrics and documentation', () => {
  test('are given 50 times at once and 10 times a second to one address, and to others meanwhile', async () => {
    const paths = ['/metrics', '/docs', '/openapi.json'];
    for (let asked = 0; asked < 50; asked += 1) expect((await get(paths[asked % 3] ?? '')).statusCode).toBe(200);
    for (const path of paths) {
      const refused = await get(path);
      expect([refused.statusCode, refused.headers['retry-after']]).toEqual([429, '1']);
      expect(refused.json().error).toBe('rate_limited: too many requests from this address; try again later');
    }
    expect((await get('/metrics', {}, '192.0.2.2')).statusCode).toBe(200);
    clock.advance(1_000);
    for (let asked = 0; asked < 10; asked += 1) expect((await get('/metrics')).statusCode).toBe(200);
    expect((await get('/metrics')).statusCode).toBe(429);
  });

  test('are given to the metrics token alone when one is set, and not counted for it, but for a wrong one', async () => {
    const guarded = await startRest({ metricsToken: 'scrape-me' }, clock);
    const scrape = (token: string) =>
      guarded.app.inject({ method: 'GET', url: '/metrics', headers: { authorization: `Bearer ${token}` } });
    try {
      expect((await guarded.app.inject('/metrics')).statusCode).toBe(401);
      expect((await scrape(guarded.tokenOf('admin'))).statusCode).toBe(401);
      for (let asked = 0; asked < 48; asked += 1) expect((await scrape('scrape-m')).statusCode).toBe(401);
      expect((await scrape('scrape-m')).statusCode).toBe(429);
      for (let asked = 0; asked < 100; asked += 1) expect((await scrape('scrape-me')).statusCode).toBe(200);
    } finally {
      await guarded.close();
    }
  });

  test('leave health and readiness free', async () => {
    for (let asked = 0; asked < 200; asked += 1) {
      const path = asked % 2 === 0 ? '/healthz' : '/readyz';
      expect((await get(path, {}, '192.0.2.3')).statusCode).toBe(200);
    }
  });

  test('are compressed for a client that accepts it, and are the same bytes', async () => {
    const [path, from] = ['/openapi.json', '192.0.2.4'];
    const plain = await get(path, {}, from);
    expect(plain.headers).toMatchObject({ vary: 'accept-encoding', 'content-length': String(plain.rawPayload.length) });
    expect(plain.headers).not.toHaveProperty('content-encoding');
    for (const accepted of ['gzip', 'br;q=1.0, GZIP;q=0.5', 'deflate,gzip']) {
      const packed = await get(path, { 'accept-encoding': accepted }, from);
      expect(packed.headers).toMatchObject({
        'content-encoding': 'gzip',
        'content-type': plain.headers['content-type'],
      });
      expect(packed.rawPayload.length).toBeLessThan(plain.rawPayload.length / 4);
      expect(gunzipSync(packed.rawPayload).equals(plain.rawPayload)).toBe(true);
    }
    for (const accepted of ['', 'br', 'gzip;q=0', 'identity']) {
      expect((await get(path, { 'accept-encoding': accepted }, from)).headers).not.toHaveProperty('content-encoding');
    }
  });
});
