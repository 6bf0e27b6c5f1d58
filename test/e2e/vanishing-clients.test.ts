/**
 * Clients of REST that are gone before they are answered, over HTTP and HTTPS: connections that are reset before the service
 * accepts them, and answers that are aborted under way. None of them ends the process.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { prepareService, statusOf, type ServiceProcess } from '../../scripts/stack/service.js';
import { createCertificate } from '../support/certificate.js';
import { eventually } from '../support/eventually.js';

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;

describe.each(['HTTP', 'HTTPS'])('a client of REST over %s that is gone', (scheme) => {
  const folder = mkdtempSync(join(tmpdir(), 'vanishing-'));
  const tls = scheme === 'HTTPS' ? createCertificate() : undefined;
  let service: ServiceProcess;
  beforeAll(async () => {
    const env = { SVC_LOG_LEVEL: 'debug' };
    service = await prepareService({ dataDir: join(folder, 'data'), env, ...(tls === undefined ? {} : { tls }) });
    await service.start();
  });
  afterAll(async () => {
    await service.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function dial(): Promise<Socket> {
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  }
  async function secured(socket: Socket): Promise<Socket> {
    if (tls === undefined) return socket;
    const inside = connectTls({ socket, ca: tls.cert, host: '127.0.0.1' });
    inside.on('error', () => undefined);
    await once(inside, 'secureConnect');
    return inside;
  }
  async function serves(): Promise<void> {
    expect(service.program().exited(), service.program().output().slice(-2_000)).toBe(false);
    expect(await statusOf(`${service.url}/healthz`, tls?.cert)).toBe(200);
  }
  /** The system accepts connections and bytes for the service meanwhile. */
  async function whileItSleeps(act: () => Promise<void>): Promise<void> {
    service.program().child.kill('SIGSTOP');
    try {
      await act();
    } finally {
      service.program().child.kill('SIGCONT');
    }
    await serves();
  }

  it('before its connection is accepted does not end the process', async () => {
    for (let round = 0; round < 3; round += 1) {
      await whileItSleeps(async () => {
        const socket = await dial();
        // Over TLS these bytes are no handshake: what matters there is that the connection is gone.
        await new Promise((resolve) => socket.write(get('/healthz'), resolve));
        socket.resetAndDestroy();
        await once(socket, 'close');
      });
    }
  });

  it('before its request is read does not end the process, and the record of it names its address', async () => {
    for (let round = 0; round < 3; round += 1) {
      const socket = await dial();
      const inside = await secured(socket);
      await whileItSleeps(async () => {
        await new Promise((resolve) => inside.write(get(`/vanished-${round}`), resolve));
        socket.resetAndDestroy();
        await once(socket, 'close');
      });
    }
  });

  it('while its answer is under way does not end the process, and the record of it names its address', async () => {
    for (let round = 0; round < 40; round += 1) {
      const socket = await dial();
      const inside = await secured(socket);
      // More than the system takes for a client that does not read.
      inside.write(get('/docs').repeat(8));
      await once(inside, 'readable');
      if (round % 2 === 0) socket.resetAndDestroy();
      else inside.destroy();
      await once(socket, 'close');
    }
    await serves();
    const aborted = (): readonly { readonly address: string }[] =>
      service
        .program()
        .output()
        .split('\n')
        .filter((line) => line.includes('"aborted":true'))
        .map((line) => JSON.parse(line) as { address: string });
    await eventually(() => aborted().length).toBeGreaterThan(0);
    expect(new Set(aborted().map(({ address }) => address))).toEqual(new Set(['127.0.0.1']));
  });
});
