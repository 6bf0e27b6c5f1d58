/** What the REST port answers until the service is up, over a real socket. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { freePorts } from '../../scripts/stack/process.js';
import { release } from '../../src/kernel/version.js';
import { answerWhileStarting } from '../../src/transport/rest/server/while-starting.js';

async function starting(at = 0): Promise<{ url: string; port: number; close(): Promise<void> }> {
  const server = await answerWhileStarting({ host: '127.0.0.1', port: at }, undefined, []);
  onTestFinished(() => server.close());
  const { port, close } = server;
  return { url: `http://127.0.0.1:${port}`, port, close };
}

it('answers the probes as alive and not ready, and every other request with a 503', async () => {
  const { url } = await starting();
  const health = await fetch(`${url}/healthz`);
  expect([health.status, await health.json()]).toEqual([200, { status: 'ok', ...release }]);
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

it('closes its connections and frees the port, also while a client is idle', async () => {
  // Not one of those that outgoing connections are given, which could take it as soon as it is free.
  const [below] = await freePorts(1);
  const { url, port, close } = await starting(below);
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

it('rejects with EADDRINUSE when the port is taken', async () => {
  const { port } = await starting();
  await expect(answerWhileStarting({ host: '127.0.0.1', port }, undefined, [])).rejects.toThrow(/EADDRINUSE/);
});
