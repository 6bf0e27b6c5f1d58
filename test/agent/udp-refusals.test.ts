/** What a node says of its UDP listeners and upstreams when peers refuse, or cannot be answered. */
import { createSocket, type Socket } from 'node:dgram';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { agentRuntime } from '../support/agent-runtime.js';
import { eventually } from '../support/eventually.js';
import { cluster, freePort, snapshot, udpRule } from '../support/snapshots.js';
import { udpPeers } from '../support/udp-peers.js';

const { closers, echo, client } = udpPeers();

it('knows whether somebody answers or at least does not refuse, one-way targets included', async () => {
  const [answering, sink] = [await echo('t'), createSocket('udp4').bind(0, '127.0.0.1')];
  closers.push(async () => void sink.close());
  await once(sink, 'listening');
  const ports = { echo: await freePort(), sink: await freePort(), none: await freePort() };
  const gateway = agentRuntime(closers);
  await gateway.apply(
    snapshot(1, {
      udp: Object.entries(ports).map(([name, port]) => udpRule(port, `cluster:${name}`)),
      clusters: [
        cluster('echo', [answering]),
        cluster('sink', [`127.0.0.1:${sink.address().port}`]),
        cluster('none', [`127.0.0.1:${await freePort()}`]),
      ],
    }),
  );
  const known = (): object =>
    Object.fromEntries(gateway.report().gateway?.upstreams.map(({ cluster: name, healthy }) => [name, healthy]) ?? []);
  const found: unknown[] = [];
  gateway.watch({ onUpstreams: () => void found.push(known()), onRoutes: () => undefined });
  const socket = client();
  const again = setInterval(() => Object.values(ports).map((port) => socket.send('x', port, '127.0.0.1')), 50);
  closers.push(async () => clearInterval(again));
  await eventually(known).toEqual({ echo: true, sink: true, none: false });
  expect(found).not.toContainEqual(expect.objectContaining({ none: true }));
});

it('drops a datagram from port 0, where nobody can be answered', async () => {
  const [port, gateway, made] = [await freePort(), agentRuntime(closers), new Set<Socket>()];
  const note = (message: unknown): void => void made.add((message as { readonly socket: Socket }).socket);
  subscribe('udp.socket', note);
  await gateway.apply(snapshot(1, { udp: [udpRule(port, await echo('t'))] }));
  unsubscribe('udp.socket', note);
  const from = { address: '127.0.0.1', family: 'IPv4', port: 0, size: 1 };
  for (const socket of made) if (socket.address().port === port) socket.emit('message', Buffer.from('x'), from);
  expect(gateway.runtimeListeners()[0]).toMatchObject({ state: 'running', totalSessions: 0n });
  const socket = client();
  const answered = once(socket, 'message');
  const again = setInterval(() => socket.send('y', port, '127.0.0.1'), 50);
  closers.push(async () => clearInterval(again));
  expect(String((await answered)[0])).toBe('t:y');
});
