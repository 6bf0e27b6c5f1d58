/**
 * Receivers of webhooks that misbehave, and the real service: every try and every ping ends within 10 s, and so does the service
 * at SIGTERM while all of them are under way. Cites `docs/contract/automation.md#webhooks`.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { eventually } from '../../scripts/stack/process.js';
import { prepareService } from '../../scripts/stack/service.js';
import { createClosers } from '../../src/kernel/closers.js';
import { silentLogger } from '../../src/kernel/logger.js';

const closers = createClosers(silentLogger);
afterEach(() => closers.closeAll());

/** Says something again and again until the connection is gone. */
const again = (socket: Socket, text: string): void => {
  const timer = setInterval(() => socket.write(text), 20);
  socket.once('close', () => clearInterval(timer));
};

interface Misbehaviour {
  readonly scheme: 'http' | 'https';
  /** What it does once the request has begun to come, or at once. */
  readonly does: (socket: Socket) => void;
  readonly when: 'request' | 'connection';
  /** What is said of a try. */
  readonly tried: { readonly status: number | null; readonly error: unknown };
}

const inTime = { status: null, error: 'no answer within 10 s' };
const lost = { status: null, error: expect.stringContaining('the connection failed') };
const misbehaviours: { readonly [name: string]: Misbehaviour } = {
  'switches protocols': {
    scheme: 'http',
    when: 'request',
    does: (socket) => socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n'),
    tried: { status: 101, error: 'the receiver answered 101' },
  },
  'says nothing': { scheme: 'http', when: 'request', does: () => undefined, tried: inTime },
  'stops within its headers': {
    scheme: 'http',
    when: 'request',
    does: (socket) => socket.write('HTTP/1.1 200 OK\r\nx-one: 1\r\n'),
    tried: inTime,
  },
  'goes on with 102 Processing': {
    scheme: 'http',
    when: 'request',
    does: (socket) => again(socket, 'HTTP/1.1 102 Processing\r\n\r\n'),
    tried: { status: null, error: 'too many interim answers came' },
  },
  'trickles its body': {
    scheme: 'http',
    when: 'request',
    does(socket) {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 60000\r\n\r\n');
      again(socket, '.');
    },
    // It has answered.
    tried: { status: 200, error: null },
  },
  resets: { scheme: 'http', when: 'request', does: (socket) => socket.resetAndDestroy(), tried: lost },
  'ends its half': { scheme: 'http', when: 'connection', does: (socket) => socket.end(), tried: lost },
  'says nothing of TLS': { scheme: 'https', when: 'request', does: () => undefined, tried: inTime },
};

interface Receiver {
  readonly name: string;
  readonly url: string;
  readonly tried: Misbehaviour['tried'];
  /** Connections since the start. */
  connections(): number;
}

async function receiverOf(name: string, { scheme, when, does, tried }: Misbehaviour): Promise<Receiver> {
  let connections = 0;
  const open = new Set<Socket>();
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    connections += 1;
    open.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => open.delete(socket));
    // Such a receiver keeps its half open, and notices the other side's end only when it writes.
    if (when === 'connection') does(socket);
    else socket.once('data', () => does(socket));
    socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.add(name, {
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  });
  const { port } = server.address() as AddressInfo;
  return { name, url: `${scheme}://127.0.0.1:${port}/`, tried, connections: () => connections };
}

test('whatever a receiver does, tries and pings end, nothing else waits for them, and SIGTERM ends the service', async () => {
  const receivers = await Promise.all(Object.entries(misbehaviours).map((one) => receiverOf(...one)));
  const dataDir = await mkdtemp(join(tmpdir(), 'svc-receivers-'));
  closers.add('folder', { close: () => rm(dataDir, { recursive: true, force: true }) });
  const service = await prepareService({ dataDir, env: { SVC_WEBHOOK_ALLOW: '127.0.0.0/8' } });
  await service.start();
  closers.add('service', { close: () => service.kill() });
  const admin = await service.admin();
  const hooks = new Map<string, string>();
  for (const { name, url } of receivers) {
    const filters = { resource_type: ['l4_upstream'] };
    const made = await admin.call<{ id: string }>('POST', '/api/webhooks', { name, url, types: ['command'], filters });
    hooks.set(name, made.id);
  }
  const upstream = (name: string) => admin.call('POST', '/api/l4-upstreams', { name, endpoint: '192.0.2.1:80' });
  const ping = ({ name }: Receiver) =>
    admin.call<{ status: number | null; error: string | null }>('POST', `/api/webhooks/${hooks.get(name)}/ping`);

  // As many pings as there may be at a time: each gives its place back.
  await upstream('one');
  const pinged = await Promise.all(receivers.map(ping));
  const said = pinged.map(({ status, error }, index) => [receivers[index]?.name, status, error]);
  expect(said).toEqual(receivers.map(({ name, tried }) => [name, tried.status, tried.error]));
  for (const { name, tried } of receivers) {
    const state = tried.error === null ? 'ok' : 'failing';
    await eventually(`the webhook of what ${name} is ${state}`, async () => {
      const shown = await admin.call<{ state: string; last_delivery: { type: string; error: unknown } | null }>(
        'GET',
        `/api/webhooks/${hooks.get(name)}`,
      );
      return (shown.last_delivery !== null && shown.state === state) || undefined;
    });
  }

  const before = receivers.map(({ connections }) => connections());
  const cut = receivers.map((receiver) => ping(receiver).catch(() => undefined));
  await upstream('two');
  await eventually(
    'all are tried again',
    async () => receivers.every(({ connections }, index) => connections() > (before[index] ?? 0)) || undefined,
  );
  // Null if it had to be killed.
  expect(await service.program().stop('SIGTERM', 30_000)).toBe(0);
  expect(service.program().output()).not.toMatch(/did not close in time|failed to close/);
  await Promise.all(cut);
}, 120_000);
