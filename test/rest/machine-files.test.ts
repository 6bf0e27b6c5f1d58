/** `/join.sh` and `/agent/…` (`docs/contract/joining.md#the-machines-side`); what the script does is in `test/machines/`. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { version } from '../../src/kernel/version.js';
import { openAgentProgram } from '../../src/transport/rest/machines/agent-program.js';
import { createManualClock } from '../support/manual-clock.js';
import { projectRoot } from '../support/project-root.js';
import { startRest, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest({ trustedProxies: ['127.0.0.0/8'] }, createManualClock());
});
afterAll(() => rest.close());

const versioned = `/agent/gateway-agent-${version}.cjs`;
let clients = 0;
/** Each request comes from its own address, so no test uses up another's budget. */
const ask = (url: string, headers: Record<string, string> = {}, method = 'GET', service = rest) =>
  service.call(method, url, {
    role: 'nobody',
    headers: { 'x-forwarded-for': `192.0.2.${(clients += 1)}`, ...headers },
  });

test('the program is served to machines without a token, as it was built, with its checksums', async () => {
  const built = readFileSync(join(projectRoot, 'dist/agent/gateway-agent.cjs'));
  const sha256 = createHash('sha256').update(built).digest('hex');
  for (const [url, caching] of [
    [versioned, 'public, max-age=31536000, immutable'],
    ['/agent/gateway-agent.cjs', 'no-cache'],
  ] as const) {
    const answer = await ask(url);
    expect([answer.statusCode, answer.rawPayload.equals(built)]).toEqual([200, true]);
    const head = await ask(url, {}, 'HEAD');
    for (const { headers } of [answer, head]) {
      expect(headers).toMatchObject({
        'cache-control': caching,
        etag: `"${sha256}"`,
        'content-length': String(built.length),
        'content-type': 'text/javascript; charset=utf-8',
      });
    }
  }
  const sums = await ask('/agent/SHA256SUMS');
  expect(sums.body).toBe(`${sha256}  gateway-agent.cjs\n${sha256}  gateway-agent-${version}.cjs\n`);
  expect(sums.headers).toMatchObject({ 'cache-control': 'no-cache', etag: `"${sha256}"` });
  for (const [held, status] of [
    [`"${sha256}"`, 304],
    [`"other", W/"${sha256}"`, 304],
    ['*', 304],
    ['"other"', 200],
  ] as const) {
    const answer = await ask('/agent/SHA256SUMS', { 'if-none-match': held });
    expect([held, answer.statusCode, answer.body === '']).toEqual([held, status, status === 304]);
  }
  for (const url of ['/agent/gateway-agent-0.0.1.cjs', '/agent/..', '/agent/', '/agent/package.json', '/agent/a/b'])
    expect([url, (await ask(url)).statusCode]).toEqual([url, 404]);
  expect((await ask(versioned, {}, 'POST')).statusCode).toBe(405);
});

test('the script holds the checksum of the program and the addresses of the request, each in quotes, and is not kept', async () => {
  const { port } = new URL(`http://${rest.agents}`);
  for (const [host, proto, base, endpoint] of [
    ['gateway.example', 'https', 'https://gateway.example', `http://gateway.example:${port}`],
    ['127.0.0.1:8081', 'http', 'http://127.0.0.1:8081', `http://127.0.0.1:${port}`],
    ['[2001:db8::7]:444', 'https', 'https://[2001:db8::7]:444', `http://[2001:db8::7]:${port}`],
  ] as const) {
    // Many proxies pass on what a client says here.
    const also = { 'x-forwarded-proto': proto, 'x-forwarded-host': 'evil.example' };
    const answer = await ask('/join.sh', { host, ...also });
    const agents = await rest.data('GET', '/api/nodes/control-endpoint', { headers: { host, ...also } });
    expect(agents.endpoint).toBe(endpoint);
    expect([answer.statusCode, answer.headers['cache-control']]).toEqual([200, 'no-store']);
    expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
    const sha256 = String((await ask(versioned, {}, 'HEAD')).headers['etag']).replaceAll('"', '');
    for (const line of [
      `base='${base}'`,
      `endpoint='${endpoint}'`,
      `file='gateway-agent-${version}.cjs'`,
      `sha256='${sha256}'`,
    ])
      expect(answer.body).toContain(`\n  ${line}\n`);
  }
  for (const host of ["a'b", 'a b', 'a;b', '$(id)', 'a/b', 'user@example'])
    expect([host, (await ask('/join.sh', { host })).statusCode]).toEqual([host, 400]);
  const published = await startRest({ publicUrl: 'https://control.example' });
  expect((await ask('/join.sh', { host: "a'b" }, 'GET', published)).body).toContain("base='https://control.example'");
  await published.close();
});

test('what needs no token has a budget for each address, and says when to try again', async () => {
  const from = { 'x-forwarded-for': '198.51.100.7' };
  const answers = [];
  for (const url of ['/join.sh', '/agent/SHA256SUMS', versioned])
    for (let count = 0; count < 40; count += 1) answers.push(await ask(url, from, 'HEAD'));
  const refused = answers.filter(({ statusCode }) => statusCode === 429);
  expect(refused.length).toBeGreaterThan(20);
  for (const { headers } of refused) expect(headers['retry-after']).toMatch(/^[1-9]/);
});

test('neither is served when the settings say so, or when the program was not built; then the line needs the program', async () => {
  const silent = await startRest({ serveAgent: false });
  for (const url of ['/join.sh', '/agent/SHA256SUMS', '/agent/gateway-agent.cjs', versioned])
    expect([url, (await ask(url, {}, 'GET', silent)).statusCode]).toEqual([url, 404]);
  const { command, token } = await silent.data('POST', '/api/join-tokens', {
    body: { name: 'a' },
    headers: { host: '127.0.0.1' },
  });
  const { port } = new URL(`http://${silent.agents}`);
  expect(command).toBe(`SVC_JOIN_TOKEN='${token}' gateway-agent join --endpoint 'http://127.0.0.1:${port}'`);
  await silent.close();
  expect(await openAgentProgram(() => undefined)()).toBeUndefined();
});
