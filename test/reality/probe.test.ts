/** What a visit of the target learns, from targets that send far more than web servers do. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import { expect, test } from 'vitest';
import { probeTarget } from '../../src/transport/listener/reality/probe.js';
import { createTarget } from '../../src/transport/listener/reality/target.js';
import { tuning } from '../../src/transport/listener/reality/tuning.js';
import { createCertificate } from '../support/certificate.js';

test('of a target that goes on sending, only the first records are imitated', async () => {
  const server = createServer(createCertificate('target.example'), (socket) => {
    socket.on('error', () => undefined);
    const more = (): unknown => socket.destroyed || socket.write('x', () => setImmediate(more));
    more();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const target = createTarget({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
  const visit = { serverName: 'target.example', protocols: 'none', hash: undefined, watchMs: 1_000 } as const;
  const probed = await probeTarget(target, { ...visit, signal: new AbortController().signal }, () => undefined);
  target.close();
  server.close();
  expect(typeof probed === 'object' && probed.lengths.length).toBe(tuning.recordsAfterFlight);
});
