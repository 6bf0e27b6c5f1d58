/** `docs/contract/console.md`: how the service serves the console, and how large its first load is. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import Fastify from 'fastify';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RestApp } from '../../src/transport/rest/deps.js';
import { consoleRoutes, openConsole } from '../../src/transport/rest/console/console-routes.js';
import { projectRoot } from '../support/project-root.js';
import { startRest, type RestFixture } from '../support/rest-fixture.js';

const built = join(projectRoot, 'dist', 'console');
const assets = readdirSync(join(built, 'assets'));
const firstLoadBytes = 300 * 1024;

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
});
afterAll(() => rest.close());
const get = (url: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' | 'POST' = 'GET') =>
  rest.app.inject({ method, url, headers });
const nonceOf = (page: string): string => /nonce="([^"]+)"/.exec(page)?.[1] ?? '';

test('a browser is sent from / to the console, and a program is not', async () => {
  const browser = await get('/', { accept: 'text/html,application/xhtml+xml' });
  expect([browser.statusCode, browser.headers.location]).toEqual([302, '/console/']);
  expect((await get('/', { accept: '*/*' })).json().error).toMatch(/^not_found: /);
  expect((await get('/console')).headers.location).toBe('/console/');
});

test('each page has a nonce of its own, in a policy that allows nothing else', async () => {
  const [one, other] = [await get('/console/'), await get('/console/')];
  const nonce = nonceOf(one.body);
  expect(nonce).toMatch(/^[\w+/]{24}$/);
  expect(nonceOf(other.body)).not.toBe(nonce);
  expect(one.headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'text/html; charset=utf-8' });
  expect(String(one.headers['content-security-policy']).split('; ')).toEqual([
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]);
  expect(one.body).not.toMatch(/<script(?![^>]* src=)/);
});

test('deep links get the page, unknown files a 404, other methods a 405', async () => {
  for (const url of ['/console/nodes', '/console/nodes/some.name?label=a:b', '/console/a/b/c']) {
    expect([url, (await get(url)).body]).toEqual([url, expect.stringContaining('<div id="root">')]);
  }
  expect((await get('/console/assets/nothing-1.js')).json().error).toMatch(/^not_found: /);
  expect((await get('/console/assets/..%2findex.html')).statusCode).toBe(404);
  expect((await get('/console/', {}, 'HEAD')).body).toBe('');
  const wrong = await get('/console/nodes', {}, 'POST');
  expect([wrong.statusCode, wrong.headers['allow']]).toEqual([405, 'GET, HEAD']);
});

test('hashed files stay in caches, and are compressed as the browser asks', async () => {
  const name = assets.find((file) => /^index-.*\.js$/.test(file)) ?? '';
  const plain = readFileSync(join(built, 'assets', name));
  const url = `/console/assets/${name}`;
  const answers = {
    br: await get(url, { 'accept-encoding': 'gzip, deflate, br' }),
    gzip: await get(url, { 'accept-encoding': 'gzip, br;q=0' }),
    none: await get(url),
  };
  expect([answers.br.headers['content-encoding'], answers.gzip.headers['content-encoding']]).toEqual(['br', 'gzip']);
  expect(brotliDecompressSync(answers.br.rawPayload).equals(plain)).toBe(true);
  expect(gunzipSync(answers.gzip.rawPayload).equals(plain)).toBe(true);
  expect(answers.none.rawPayload.equals(plain)).toBe(true);
  expect(answers.br.headers).toMatchObject({
    'cache-control': 'public, max-age=31536000, immutable',
    'content-type': 'text/javascript; charset=utf-8',
    vary: expect.stringContaining('accept-encoding'),
  });
});

test('the files of the console have no budget', async () => {
  const url = `/console/assets/${assets.find((file) => file.endsWith('.css'))}`;
  const statuses = await Promise.all(Array.from({ length: 500 }, async () => (await get(url)).statusCode));
  expect(new Set(statuses)).toEqual(new Set([200]));
});

test('a service without a built console starts, and says so on the page', async () => {
  const app = Fastify();
  consoleRoutes(
    app as unknown as RestApp,
    openConsole(() => undefined),
  );
  const answer = await app.inject('/console/');
  expect([answer.statusCode, answer.body]).toEqual([503, expect.stringContaining('npm run build')]);
  await app.close();
});

test('the first load is under 300 KiB compressed, and each page is a part of its own', () => {
  const page = readFileSync(join(built, 'index.html'), 'utf8');
  const first = [...page.matchAll(/\/console\/assets\/([^"]+)/g)].map(([, name = '']) => name);
  const bytes = first.map((name) => readFileSync(join(built, 'assets', `${name}.br`)).length);
  expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(firstLoadBytes);
  const pages = readdirSync(join(projectRoot, 'console', 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('-page.tsx'))
    .map((file) => file.slice(file.lastIndexOf('/') + 1, -'.tsx'.length));
  for (const name of pages) expect(assets).toContainEqual(expect.stringMatching(new RegExp(`^${name}-[\\w-]+\\.js$`)));
  expect(first.filter((name) => pages.some((one) => name.startsWith(`${one}-`)))).toEqual([]);
});
