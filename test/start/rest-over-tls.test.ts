/**
 * `SVC_HTTP_TLS_CERT_FILE` and `SVC_HTTP_TLS_KEY_FILE` of `docs/contract/configuration.md#configuration`: REST over TLS, and
 * files that cannot serve it.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually, freePorts, startProgram, type RunningProgram } from '../../scripts/stack/process.js';
import { readTls } from '../../src/app/config/tls-files.js';
import { createCertificate } from '../support/certificate.js';

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
      SVC_HTTP_TLS_CERT_FILE: certFile,
      SVC_HTTP_TLS_KEY_FILE: keyFile,
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

  function answered(method: string, path: string, body?: object, token?: string): Promise<Answered> {
    const headers = {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    return new Promise((resolve, reject) => {
      const outgoing = request({ host: '127.0.0.1', port, path, method, headers, ca: own.cert, timeout: 5_000 });
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
    const list = await answered('GET', '/api/nodes', undefined, token);
    expect([list.status, list.json.data.total]).toEqual([200, 1]);
    expect(list.headers['strict-transport-security']).toMatch(/^max-age=31536000/);
    expect((await answered('GET', '/api/nodes')).json).toEqual({
      success: false,
      data: null,
      error: expect.stringMatching(/^unauthenticated: /),
    });
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
});

describe('TLS files that cannot be used are refused at the start by the name of their setting', () => {
  const nothing = join(folder, 'nothing.pem');
  const garbage = file('garbage.pem', 'hunter2');
  const cut = file('cut.pem', own.cert.slice(0, 200));
  const chain = file('chain.pem', own.cert + other.cert);
  const cutChain = file('cut-chain.pem', own.cert + other.cert.slice(0, 200));
  const otherKey = file('other.key', other.key);

  test.each([
    ['no certificate', nothing, keyFile, `SVC_HTTP_TLS_CERT_FILE: ${nothing} cannot be read: ENOENT`],
    ['no key', certFile, nothing, `SVC_HTTP_TLS_KEY_FILE: ${nothing} cannot be read: ENOENT`],
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
  ])('%s', (_name, cert, key, sentence) => {
    const read = (): unknown => readTls({ certFile: cert, keyFile: key });
    expect(read).toThrow(sentence);
    expect(read).not.toThrow(/hunter2/);
  });

  test('a chain is taken', () => {
    expect(readTls({ certFile: chain, keyFile })).toEqual({ cert: own.cert + other.cert, key: own.key });
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
