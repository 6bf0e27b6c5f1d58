/** What the REST port says until the service is up, on a real socket. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { freePorts } from '../../scripts/stack/process.js';
import { answerWhileStarting } from '../../src/transport/rest/while-starting.js';

async function starting(): Promise<{ url: string; port: number; close(): Promise<void> }> {
  const [port] = await freePorts(1);
  const server = await answerWhileStarting({ host: '127.0.0.1', port: port! }, undefined);
  onTestFinished(() => server.close());
  return { url: `http://127.0.0.1:${port}`, port: port!, close: () => server.close() };
}

it('is alive, not ready, and asks everybody else to come back', async () => {
  const { url } = await starting();
  const health = await fetch(`${url}/healthz`);
  expect([health.status, await health.json()]).toEqual([200, { status: 'ok' }]);
  const ready = await fetch(`${url}/readyz?verbose`);
  expect([ready.status, await ready.json()]).toEqual([
    503,
    { ready: false, reasons: ['the service is starting; its log says what it waits for'] },
  ]);
  const call = await fetch(`${url}/api/auth/login`, { method: 'POST', body: '{"username":"admin"}' });
  expect(call.status).toBe(503);
  expect(call.headers.get('retry-after')).toBe('1');
  expect(await call.json()).toEqual({
    success: false,
    data: null,
    error: 'unavailable: the service is starting; its log says what it waits for',
  });
  expect((await fetch(`${url}/healthz`, { method: 'HEAD' })).status).toBe(200);
});

it('keeps no connection, and leaves the port free, whatever is still open', async () => {
  const { url, port, close } = await starting();
  expect((await fetch(`${url}/healthz`)).headers.get('connection')).toBe('close');
  const idle = connect(port, '127.0.0.1');
  idle.on('error', () => undefined);
  await once(idle, 'connect');
  const ended = once(idle, 'close');
  await Promise.all([close(), close()]);
  await ended;
  const next = createServer().listen(port, '127.0.0.1');
  await once(next, 'listening');
  next.close();
});

it('says who can not listen where a port is taken', async () => {
  const { port } = await starting();
  await expect(answerWhileStarting({ host: '127.0.0.1', port }, undefined)).rejects.toThrow(/EADDRINUSE/);
});
