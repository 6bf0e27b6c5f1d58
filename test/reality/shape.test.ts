/** What somebody on the wire sees of an agent's handshake is what the target said on that very connection. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { canRun } from '../support/can-run.js';
import { createCertificate } from '../support/certificate.js';
import { freePort } from '../support/snapshots.js';
import { openReality } from '../../src/agent/reality/handshake.js';
import { createRecordReader } from '../../src/channel/tls/record-reader.js';
import { eventually } from '../support/eventually.js';
import {
  startRealityFixture,
  startTlsTarget,
  targetName,
  type RealityFixture,
  type TlsTarget,
} from '../support/reality-fixture.js';

/** In front of a target: keeps what it says on each connection. */
interface Front {
  readonly port: number;
  readonly said: Buffer[][];
  close(): void;
}

/** @param targetPorts are taken in turn */
async function startFront(...targetPorts: readonly number[]): Promise<Front> {
  const saidThere: Buffer[][] = [];
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const parts: Buffer[] = [];
    saidThere.push(parts);
    const port = targetPorts[(saidThere.length - 1) % targetPorts.length] ?? 0;
    const behind = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
    behind.on('data', (bytes: Buffer) => parts.push(bytes));
    for (const one of [socket, behind]) {
      sockets.add(one);
      one.on('error', () => undefined);
    }
    socket.pipe(behind);
    behind.pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    said: saidThere,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

let target: TlsTarget;
let front: Front;
let said: Buffer[][];
let fixture: RealityFixture;

beforeAll(async () => {
  target = await startTlsTarget({ ALPNProtocols: ['h2', 'http/1.1'] });
  front = await startFront(target.port);
  said = front.said;
  fixture = await startRealityFixture(front.port, { probeMs: 2_000 });
  // The target is asked what it sends after a handshake, three times for each offer of protocols.
  await vi.waitFor(() => expect(said.length).toBe(9), 20_000);
});
afterAll(async () => {
  await fixture.close();
  front.close();
  await target.close();
});

function recordsOf(parts: readonly Buffer[]): readonly string[] {
  const reader = createRecordReader();
  const records: string[] = [];
  reader.push(Buffer.concat(parts));
  for (let record = reader.next(); typeof record === 'object'; record = reader.next())
    records.push(`${record.type}: ${record.bytes.length}`);
  return records;
}

/** An agent's connection. @returns what it is sent, which grows */
async function seenBy(
  at: RealityFixture,
  access = at.access,
): Promise<{ readonly seen: Buffer[]; readonly ok: boolean }> {
  const socket = await at.dial();
  const seen: Buffer[] = [];
  socket.on('data', (bytes: Buffer) => seen.push(bytes));
  const opened = await openReality(socket, access, at.listener.clock, 10_000);
  if (opened.ok) opened.value.resume();
  return { seen, ok: opened.ok };
}

test('the records of the flight have the types and lengths of the target’s, and its ServerHello but for the share', async () => {
  const before = said.length;
  const { seen, ok } = await seenBy(fixture);
  expect(ok).toBe(true);
  const own = recordsOf(said[before] ?? []);
  expect(own.length).toBeGreaterThanOrEqual(6);
  expect(recordsOf(seen).slice(0, 6)).toEqual(own.slice(0, 6));
  const [mine, its] = [Buffer.concat(seen), Buffer.concat(said[before] ?? [])];
  // Up to the random and the session id, the suite and the order of extensions.
  expect(mine.subarray(0, 79).equals(its.subarray(0, 79))).toBe(true);
});

test('after the handshake come records as the target sent them to a visitor: two tickets of OpenSSL', async () => {
  const { seen, ok } = await seenBy(fixture);
  expect(ok).toBe(true);
  await eventually(() => recordsOf(seen).length).toBe(8);
  const visits = said.slice(0, 3).map((parts) => recordsOf(parts).slice(6, 8));
  expect(visits).toContainEqual(recordsOf(seen).slice(6));
  expect(visits.every((records) => records.length === 2)).toBe(true);
});

const openssl = canRun('openssl', 'version');

test.skipIf(!openssl)('openssl s_client sees the certificate of the target', async () => {
  const args = [
    's_client',
    '-connect',
    `127.0.0.1:${fixture.port}`,
    '-servername',
    targetName,
    '-tls1_3',
    '-showcerts',
  ];
  const output = await new Promise<string>((resolve) => {
    const child = execFile('openssl', args, { timeout: 20_000 }, (_error, stdout) => resolve(stdout));
    child.stdin?.end('Q\n');
  });
  expect(output.replaceAll(/\s/g, '')).toContain(target.certificate.replaceAll(/\s/g, ''));
});

describe.skipIf(!openssl)('before openssl s_server', () => {
  /** Each serves one connection after the other, and the service visits a target three times at once. */
  const servers: ChildProcess[] = [];
  const ports: number[] = [];
  let folder: string;
  let between: Front;
  let behind: RealityFixture;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-s_server-'));
    const { cert, key } = createCertificate(targetName);
    await writeFile(join(folder, 'cert.pem'), cert);
    await writeFile(join(folder, 'key.pem'), key);
    const files = ['-cert', join(folder, 'cert.pem'), '-key', join(folder, 'key.pem')];
    for (let count = 0; count < 6; count += 1) {
      const port = await freePort();
      const server = spawn('openssl', ['s_server', '-accept', `127.0.0.1:${port}`, '-tls1_3', '-www', ...files]);
      servers.push(server);
      ports.push(port);
      // It says that it accepts connections.
      await once(server.stdout, 'data');
    }
    between = await startFront(...ports);
    behind = await startRealityFixture(between.port, { probeMs: 2_000 });
  });
  afterAll(async () => {
    await behind.close();
    between.close();
    for (const server of servers) server.kill('SIGKILL');
    await rm(folder, { recursive: true });
  });

  /** Lengths of what the target sends after a handshake to a visitor who offers the suites in this order. */
  async function ticketsOf(of: number, ciphers: string): Promise<readonly string[]> {
    const between = await startFront(of);
    const visitor = connectTls({ port: between.port, servername: targetName, rejectUnauthorized: false, ciphers });
    try {
      visitor.on('error', () => undefined);
      await once(visitor, 'secureConnect');
      const records = (): readonly string[] => recordsOf(between.said[0] ?? []);
      await eventually(() => records().length).toBe(8);
      return records().slice(6);
    } finally {
      visitor.destroy();
      between.close();
    }
  }

  test('an agent gets tickets as long as a browser gets them there, not as long as Node does', async () => {
    const asBrowsers = await ticketsOf(ports[4]!, 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384');
    expect(asBrowsers).not.toEqual(await ticketsOf(ports[5]!, 'TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256'));
    for (let round = 0; round < 5; round += 1) {
      const { seen, ok } = await seenBy(behind);
      expect(ok).toBe(true);
      await eventually(() => recordsOf(seen).length).toBe(8);
      expect(recordsOf(seen).slice(6)).toEqual(asBrowsers);
    }
  });
});

describe.skipIf(!canRun('nginx', '-v'))('before nginx', () => {
  let folder: string;
  let server: ChildProcess;
  let between: Front;
  let behind: RealityFixture;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-nginx-'));
    const { cert, key } = createCertificate(targetName);
    await writeFile(join(folder, 'cert.pem'), cert);
    await writeFile(join(folder, 'key.pem'), key);
    const port = await freePort();
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${folder}/${name};`,
    );
    const configuration = `daemon off; master_process off; pid ${folder}/pid; error_log stderr notice;
      events {}
      http {
        access_log off; ${temporary.join(' ')}
        server {
          listen 127.0.0.1:${port} ssl http2;
          ssl_certificate ${folder}/cert.pem; ssl_certificate_key ${folder}/key.pem; ssl_protocols TLSv1.2 TLSv1.3;
          location / { return 200 "a page"; }
        }
      }`;
    await writeFile(join(folder, 'nginx.conf'), configuration);
    server = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr']);
    let output = '';
    server.stderr?.on('data', (bytes: Buffer) => (output += bytes.toString()));
    await vi.waitFor(() => expect(output).toContain('getrlimit'), 20_000);
    between = await startFront(port);
    behind = await startRealityFixture(between.port, { probeMs: 1_000 });
  });
  afterAll(async () => {
    await behind.close();
    between.close();
    server.kill('SIGKILL');
    await rm(folder, { recursive: true });
  });

  /** The records that come for a client of ours, at least so many. */
  async function recordsFor(shortId: string, least: number): Promise<readonly string[]> {
    const { seen } = await seenBy(behind, { ...behind.access, shortId });
    await eventually(() => recordsOf(seen).length).toBeGreaterThanOrEqual(least);
    return recordsOf(seen);
  }

  /** What nginx sends after a handshake to a visitor with the offers of a browser. */
  async function afterVisit(): Promise<readonly string[]> {
    const before = between.said.length;
    const ciphers = 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384';
    const offers = { ciphers, ALPNProtocols: ['h2', 'http/1.1'] };
    const visitor = connectTls({ port: between.port, servername: targetName, rejectUnauthorized: false, ...offers });
    visitor.on('error', () => undefined);
    await once(visitor, 'secureConnect');
    const records = (): readonly string[] => recordsOf(between.said[before] ?? []).slice(6);
    await eventually(() => records().length).toBeGreaterThanOrEqual(2);
    visitor.destroy();
    return records();
  }

  test('an agent gets the flight of a stranger, and then what a browser gets', async () => {
    const [stranger, browser] = [await recordsFor('fe', 6), await afterVisit()];
    for (let round = 0; round < 5; round += 1) {
      const agent = await recordsFor(behind.access.shortId, 6 + browser.length);
      // An ECDSA signature in CertificateVerify has 70 to 72 bytes, nginx's own too.
      expect(agent.slice(0, 6)).toEqual(stranger.slice(0, 6).with(4, expect.stringMatching(/^23: (99|10[0-2])$/)));
      expect(agent.slice(6, 6 + browser.length)).toEqual(browser);
    }
  });

  test('a stranger is given nginx’s own page', async () => {
    const socket = connectTls({ port: behind.port, servername: targetName, rejectUnauthorized: false });
    socket.on('error', () => undefined);
    await once(socket, 'secureConnect');
    socket.end(`GET / HTTP/1.1\r\nhost: ${targetName}\r\nconnection: close\r\n\r\n`);
    let page = '';
    socket.on('data', (bytes: Buffer) => (page += bytes.toString()));
    await once(socket, 'close');
    expect(page).toMatch(/^HTTP\/1\.1 200 OK\r\nServer: nginx\/[\s\S]*a page$/);
  });
});
