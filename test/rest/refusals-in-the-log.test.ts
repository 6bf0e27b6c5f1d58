/**
 * What REST refuses leaves a trace with reason and address, and no flood of it fills the log.
 * `docs/contract/rest.md#errors`.
 */
import { connect, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createManualClock } from '../support/manual-clock.js';
import { startRest, type RestFixture } from '../support/rest-fixture.js';

/** However long the machine takes for a flood, it comes within a moment. */
const clock = createManualClock();
let rest: RestFixture;
let port: number;
/** Each test has an address of its own, so lines of an earlier test do not hold its own back. */
let client = '';
let clients = 0;
beforeAll(async () => {
  rest = await startRest({ trustedProxies: ['127.0.0.0/8'] }, clock);
  await rest.app.listen({ host: '127.0.0.1', port: 0 });
  port = (rest.app.server.address() as AddressInfo).port;
});
beforeEach(() => {
  clients += 1;
  client = `198.51.100.${clients}`;
  rest.logged.length = 0;
});
afterAll(() => rest.close());

const forwarded = (): Record<string, string> => ({ 'x-forwarded-for': `203.0.113.9, ${client}` });
/** Log lines about refusals. */
const lines = () => rest.logLines().filter((line) => 'reason' in line || 'left_out' in line);

test('a refused sign-in, and a call without a token, are warnings with the address behind the trusted proxy', async () => {
  const body = { username: 'admin', password: 'hunter2 hunter2' };
  const login = { role: 'nobody' as const, body, headers: forwarded() };
  expect((await rest.call('POST', '/api/auth/login', login)).statusCode).toBe(401);
  await rest.call('GET', '/api/nodes/secret-path', { role: 'nobody', headers: { 'x-forwarded-for': '192.0.2.77' } });
  expect(lines()).toEqual([
    expect.objectContaining({
      level: 'warn',
      message: 'request refused',
      reason: 'rest_unauthenticated',
      address: client,
      method: 'POST',
      route: '/api/auth/login',
    }),
    expect.objectContaining({ reason: 'rest_unauthenticated', address: '192.0.2.77', method: 'GET' }),
  ]);
  expect(rest.logged.join('\n')).not.toContain('hunter2');
});

test('a flood of requests without a token from one address writes one line a second', async () => {
  for (let i = 0; i < 150; i += 1) {
    await rest.call('POST', '/api/l4-chains', { role: 'nobody', body: {}, headers: forwarded() });
  }
  expect(lines().length).toBeGreaterThan(0);
  expect(lines().length).toBeLessThan(30);
});

test('what a forged header says as an address is cut', async () => {
  const headers = { 'x-forwarded-for': `not an address ${'x'.repeat(4_000)}` };
  await rest.call('POST', '/api/nodes', { role: 'nobody', body: {}, headers });
  for (const line of rest.logged) expect(line.length).toBeLessThan(1_200);
});

test('bytes that are not HTTP leave the address of the socket', async () => {
  await new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.5' }, () => socket.write('hello\r\n\r\n'));
    socket.resume();
    socket.on('close', resolve);
  });
  expect(lines()).toEqual([expect.objectContaining({ level: 'warn', reason: 'rest_not_http', address: '127.0.0.5' })]);
});

test('a flood from many addresses stays within the bytes of the log', async () => {
  for (let i = 0; i < 400; i += 1) {
    const headers = { 'x-forwarded-for': `10.1.${i >> 8}.${i & 255}` };
    await rest.call('DELETE', '/api/nodes/x', { role: 'nobody', headers });
  }
  const bytes = rest.logged.join('\n').length;
  expect(bytes).toBeGreaterThan(1_000);
  // The burst, and what a minute allows.
  expect(bytes).toBeLessThan((16 + 64) * 1024);
});
