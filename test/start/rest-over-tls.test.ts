/**
 * `SVC_HTTP_TLS_CERT_FILE` and `SVC_HTTP_TLS_KEY_FILE` of `docs/contract/configuration.md#configuration`: REST over TLS, and
 * files that cannot serve it.
 */
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { Agent, request, type RequestOptions } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually, freePorts, startProgram, type RunningProgram } from '../../scripts/stack/process.js';
import { readTls } from '../../src/app/config/tls-files.js';
import { watchTls } from '../../src/app/served-tls.js';
import { systemClock } from '../../src/kernel/clock.js';
import { createCertificate, type Certificate } from '../support/certificate.js';
import { eventually as soon } from '../support/eventually.js';
import { projectRoot } from '../support/project-root.js';
import { recordingLogger, type LogLine } from '../storage/eventstoredb/fixture.js';

const folder = mkdtempSync(join(tmpdir(), 'rest-tls-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const own = createCertificate('own');
const other = createCertificate('other');
const certFile = file('own.pem', own.cert);
const keyFile = file('own.key', own.key);
const write = ({ cert, key }: Certificate): void => {
  file('served.pem', cert);
  file('served.key', key);
};
write(own);
const servedFiles = { certFile: join(folder, 'served.pem'), keyFile: join(folder, 'served.key') };

describe('REST over TLS', () => {
  const password = 'a password for tests only';
  let service: RunningProgram;
  let port: number;

  beforeAll(async () => {
    const [http = 0, control = 0] = await freePorts(2);
    port = http;
    service = startProgram('main', {
      SVC_HTTP_LISTEN_ADDR: `127.0.0.1:${http}`,
      SVC_REALITY_LISTEN_ADDR: `127.0.0.1:${control}`,
      SVC_DATA_DIR: join(folder, 'data'),
      SVC_ADMIN_PASSWORD: password,
      SVC_HTTP_TLS_CERT_FILE: servedFiles.certFile,
      SVC_HTTP_TLS_KEY_FILE: servedFiles.keyFile,
    });
    await eventually('the service is ready', async () =>
      (await answered('GET', '/readyz')).status === 200 ? true : undefined,
    );
  });
  afterAll(() => service.stop());

  interface Answered {
    readonly status: number;
    readonly headers: Readonly<Record<string, unknown>>;
    readonly json: ReturnType<typeof JSON.parse>;
  }

  function answered(
    method: string,
    path: string,
    body?: object,
    token?: string,
    options: RequestOptions = {},
  ): Promise<Answered> {
    const headers = {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    return new Promise((resolve, reject) => {
      const outgoing = request({
        host: '127.0.0.1',
        port,
        path,
        method,
        headers,
        ca: own.cert,
        timeout: 5_000,
        ...options,
      });
      outgoing.on('error', reject);
      outgoing.on('response', (incoming) => {
        let text = '';
        incoming.on('data', (chunk) => (text += String(chunk)));
        incoming.on('end', () =>
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, json: JSON.parse(text) }),
        );
      });
      outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  async function handshake(options: object): Promise<TLSSocket> {
    const socket = connect({ host: '127.0.0.1', port, ca: own.cert, ...options });
    await once(socket, 'secureConnect');
    return socket;
  }

  test('serves commands and queries under the given certificate, and tells browsers to stay with TLS', async () => {
    const account = { username: 'admin', password };
    const login = await answered('POST', '/api/auth/login', account);
    const { token } = login.json.data;
    expect((await answered('POST', '/api/nodes', { name: 'n' }, token)).status).toBe(201);
    expect(service.output()).toContain(`"url":"https://127.0.0.1:${port}"`);
    const list = await answered('GET', '/api/nodes', undefined, token);
    expect([list.status, list.json.data.total]).toEqual([200, 1]);
    expect(list.headers['strict-transport-security']).toMatch(/^max-age=31536000/);
    expect((await answered('GET', '/api/nodes')).json).toEqual({
      success: false,
      data: null,
      error: expect.stringMatching(/^unauthenticated: /),
    });
  });

  test('is healthy by the health check of the image', async () => {
    const image = await readFile(join(projectRoot, 'Dockerfile'), 'utf8');
    const [program = '', ...args] = JSON.parse(image.slice(image.lastIndexOf('CMD [') + 4).split('\n')[0]!) as string[];
    const checked = async (port: number): Promise<unknown> =>
      promisify(execFile)(program, args, {
        env: { ...process.env, SVC_HTTP_LISTEN_ADDR: `127.0.0.1:${port}`, SVC_HTTP_TLS_CERT_FILE: certFile },
      }).then(
        () => 'healthy',
        ({ code }: { code: number }) => code,
      );
    const [nobody = 0] = await freePorts(1);
    expect([await checked(port), await checked(nobody)]).toEqual(['healthy', 1]);
  });

  test('takes TLS 1.2 and 1.3, nothing older, and no clear text', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const socket = await handshake({ minVersion: version, maxVersion: version });
      expect([socket.getProtocol(), socket.authorized]).toEqual([version, true]);
      expect(socket.getPeerCertificate().subject.CN).toBe('own');
      socket.destroy();
    }
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' };
    await expect(handshake(old)).rejects.toThrow();
    await expect(handshake({ ca: other.cert })).rejects.toThrow(/certificate/);
    const plain = connectPlain(port, '127.0.0.1');
    let text = '';
    plain.on('data', (data) => (text += data.toString()));
    plain.on('error', () => undefined);
    plain.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(plain, 'close');
    expect(text).not.toContain('HTTP/1.1 200');
    expect((await answered('GET', '/healthz')).status).toBe(200);
  });

  test('SIGHUP has it serve the files that are there now, if they fit; open connections stay', async () => {
    const keepAlive = new Agent({ keepAlive: true, maxSockets: 1 });
    const onOldConnection = () => answered('GET', '/healthz', undefined, undefined, { agent: keepAlive });
    expect((await onOldConnection()).status).toBe(200);
    const [before] = Object.values(keepAlive.freeSockets).flat();
    const hangUp = async (certificate: Certificate, told: RegExp): Promise<string> => {
      write(certificate);
      const from = service.output().length;
      service.child.kill('SIGHUP');
      await eventually(`the log says ${told}`, async () =>
        told.test(service.output().slice(from)) ? true : undefined,
      );
      const socket = await handshake({ rejectUnauthorized: false });
      const name = String(socket.getPeerCertificate().subject.CN);
      socket.destroy();
      return name;
    };
    const stays = (why: string): RegExp => new RegExp(`"level":"error".*${why}.*REST keeps its certificate`);
    expect(await hangUp({ ...other, key: own.key }, stays('expected the private key of the first'))).toBe('own');
    expect(await hangUp({ ...other, cert: 'hunter2' }, stays('expected certificates in PEM'))).toBe('own');
    expect(await hangUp(createCertificate('ended', [2020, 2021]), stays('has ended at 2021-01-01T'))).toBe('own');
    expect(await hangUp(createCertificate('early', [2119, 2120]), stays('not valid before 2119-01'))).toBe('own');
    expect(await hangUp(own, /the certificate of REST has not changed/)).toBe('own');
    expect(await hangUp(other, /"not_after":"2120-01-01T.*REST serves a new certificate/)).toBe('other');
    expect((await onOldConnection()).status).toBe(200);
    expect(Object.values(keepAlive.freeSockets).flat()).toEqual([before]);
    keepAlive.destroy();
    await expect(handshake({ ca: other.cert, minVersion: 'TLSv1', maxVersion: 'TLSv1.1' })).rejects.toThrow();
    expect(await hangUp(own, /REST serves a new certificate/)).toBe('own');
    expect(service.output()).not.toContain('hunter2');
  });
});

test('a change of the files is found by their content, is told once, and is taken when it fits', async () => {
  const lines: LogLine[] = [];
  write(own);
  const times = statSync(servedFiles.certFile);
  const watched = await watchTls(servedFiles, { logger: recordingLogger(lines), clock: systemClock, everyMs: 5 });
  const told: string[] = [];
  watched.onChange(({ cert }) => told.push(cert));
  try {
    file('served.pem', other.cert);
    await soon(() => JSON.stringify(lines)).toContain('expected the private key of the first certificate');
    file('served.key', other.key);
    utimesSync(servedFiles.certFile, times.atime, times.mtime);
    await soon(() => watched.current().key).toBe(other.key);
    expect(told).toEqual([other.cert]);
    expect(lines.filter(({ message }) => message.includes('REST keeps its certificate'))).toHaveLength(1);
  } finally {
    await watched.close();
  }
});

test('without a certificate SIGHUP does nothing, also during a start', async () => {
  const [http = 0, control = 0] = await freePorts(2);
  const plain = startProgram('main', {
    SVC_HTTP_LISTEN_ADDR: `127.0.0.1:${http}`,
    SVC_REALITY_LISTEN_ADDR: `127.0.0.1:${control}`,
    SVC_DATA_DIR: join(folder, 'plain'),
  });
  const status = async (path: string) => (await fetch(`http://127.0.0.1:${http}${path}`)).status;
  await eventually('it answers', async () => ((await status('/healthz')) === 200 ? true : undefined));
  plain.child.kill('SIGHUP');
  await eventually('it is ready', async () => ((await status('/readyz')) === 200 ? true : undefined));
  plain.child.kill('SIGHUP');
  expect(await status('/readyz')).toBe(200);
  expect(await plain.stop()).toBe(0);
});

describe('TLS files that cannot be used are refused at the start by the name of their setting', () => {
  const nothing = join(folder, 'nothing.pem');
  const garbage = file('garbage.pem', 'hunter2');
  const cut = file('cut.pem', own.cert.slice(0, 200));
  const chain = file('chain.pem', own.cert + other.cert);
  const cutChain = file('cut-chain.pem', own.cert + other.cert.slice(0, 200));
  const otherKey = file('other.key', other.key);
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);

  test.each([
    ['no certificate', nothing, keyFile, `SVC_HTTP_TLS_CERT_FILE: ${nothing} cannot be read: ENOENT`],
    ['no key', certFile, nothing, `SVC_HTTP_TLS_KEY_FILE: ${nothing} cannot be read: ENOENT`],
    ['a pipe, for which nobody waits', pipe, pipe, `SVC_HTTP_TLS_CERT_FILE: ${pipe}: expected certificates in PEM`],
    ['a folder', folder, keyFile, `SVC_HTTP_TLS_CERT_FILE: ${folder} cannot be read: EISDIR`],
    [
      'a certificate that is none',
      garbage,
      keyFile,
      `SVC_HTTP_TLS_CERT_FILE: ${garbage}: expected certificates in PEM`,
    ],
    ['half a certificate', cut, keyFile, `SVC_HTTP_TLS_CERT_FILE: ${cut}: expected certificates in PEM`],
    ['a chain of one and a half', cutChain, keyFile, `SVC_HTTP_TLS_CERT_FILE: ${cutChain}: expected certificates`],
    ['a key instead of it', keyFile, keyFile, `SVC_HTTP_TLS_CERT_FILE: ${keyFile}: expected certificates in PEM`],
    ['a key that is none', certFile, garbage, `SVC_HTTP_TLS_KEY_FILE: ${garbage}: expected a private key in PEM`],
    ['a certificate instead of it', certFile, certFile, `SVC_HTTP_TLS_KEY_FILE: ${certFile}: expected a private key`],
    [
      'the key of another',
      certFile,
      otherKey,
      `SVC_HTTP_TLS_KEY_FILE: ${otherKey}: expected the private key of the first certificate in SVC_HTTP_TLS_CERT_FILE`,
    ],
  ])('%s', async (_name, cert, key, sentence) => {
    const read = (): unknown => readTls({ certFile: cert, keyFile: key });
    await expect(read()).rejects.toThrow(sentence);
    await expect(read()).rejects.not.toThrow(/hunter2/);
  });

  test('a chain is taken', async () => {
    expect(await readTls({ certFile: chain, keyFile })).toMatchObject({ cert: own.cert + other.cert, key: own.key });
  });

  test('the process ends with that sentence, and one file without the other is not enough', async () => {
    const output = async (env: Readonly<Record<string, string>>): Promise<string> => {
      const program = startProgram('main', { SVC_DATA_DIR: join(folder, 'unused'), ...env });
      const [code] = await once(program.child, 'exit');
      return `${code} ${program.output()}`;
    };
    const [mixed, half] = await Promise.all([
      output({ SVC_HTTP_TLS_CERT_FILE: certFile, SVC_HTTP_TLS_KEY_FILE: otherKey }),
      output({ SVC_HTTP_TLS_CERT_FILE: certFile }),
    ]);
    expect(mixed).toMatch(/^1 [^]*SVC_HTTP_TLS_KEY_FILE: \S+: expected the private key of the first certificate/);
    expect(half).toMatch(/^1 [^]*SVC_HTTP_TLS_CERT_FILE and SVC_HTTP_TLS_KEY_FILE: expected both or neither/);
  });
});
