/**
 * An agent that is shown the target's own chain: it looks for the server's key, as a browser does, and visits the page of a
 * target that has it (`docs/reality.md#the-certificate`). The authority is one of the test.
 */
import { X509Certificate, constants, createPrivateKey, randomBytes, sign } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createSecureServer } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { hasItsKey } from '../../src/agent/reality/certificates.js';
import { openReality } from '../../src/agent/reality/handshake.js';
import { buildServerFlight, signedContent } from '../../src/channel/reality/server-flight.js';
import { readClientHello } from '../../src/channel/tls/client-hello.js';
import { alert, changeCipherSpecRecord, group, recordHeaderBytes, recordType } from '../../src/channel/tls/codes.js';
import { answerShare } from '../../src/channel/tls/key-exchange.js';
import { createTranscript, handshakeSecrets } from '../../src/channel/tls/key-schedule.js';
import { createMessageReader } from '../../src/channel/tls/message-reader.js';
import { createRecordCipher } from '../../src/channel/tls/record-cipher.js';
import { createRecordReader, nextRecord } from '../../src/channel/tls/record-reader.js';
import { suiteOf } from '../../src/channel/tls/suites.js';
import { extensionField, message, uint, vector } from '../../src/channel/tls/vectors.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { systemClock } from '../../src/kernel/clock.js';
import { canRun } from '../support/can-run.js';
import { eventually } from '../support/eventually.js';

const name = 'target.example';
const noOpenssl = !canRun('openssl', 'version');
/** Bounded, because this process hears nothing meanwhile. */
const openssl = (...args: readonly string[]): void =>
  void execFileSync('openssl', [...args], { stdio: 'pipe', timeout: 60_000 });
let folder: string;
let roots: readonly X509Certificate[];

interface Leaf {
  readonly cert: string;
  readonly key: string;
}

/** A certificate of the test's authority. */
function leaf(file: string, algorithm: readonly string[]): Leaf {
  const at = (ending: string): string => join(folder, `${file}.${ending}`);
  openssl('req', '-newkey', ...algorithm, '-nodes', '-keyout', at('key'), '-out', at('csr'), '-subj', `/CN=${name}`);
  writeFileSync(at('ext'), `subjectAltName=DNS:${name}\n`);
  const by = ['-CA', join(folder, 'ca.pem'), '-CAkey', join(folder, 'ca.key'), '-CAcreateserial'];
  openssl('x509', '-req', '-in', at('csr'), ...by, '-days', '30', '-extfile', at('ext'), '-out', at('pem'));
  return { cert: readFileSync(at('pem'), 'utf8'), key: readFileSync(at('key'), 'utf8') };
}
const ec = ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'shown-chain-'));
  if (noOpenssl) return;
  const [key, out] = [join(folder, 'ca.key'), join(folder, 'ca.pem')];
  const files = ['-nodes', '-keyout', key, '-out', out, '-subj', '/CN=authority', '-days', '30'];
  openssl('req', '-x509', '-newkey', ...ec, ...files);
  roots = [new X509Certificate(readFileSync(out))];
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const servers: Server[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
});

/** What an agent says of a server that is not its service. */
async function told(server: Server): Promise<string> {
  servers.push(server);
  server.on('connection', (socket: Socket) => sockets.push(socket.on('error', () => undefined)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
  socket.on('error', () => undefined);
  const access = { publicKey: Buffer.from(generateX25519().publicKey), shortId: '0123ab', serverName: name };
  const opened = await openReality(socket, access, systemClock, 10_000, () => roots);
  return opened.ok ? 'opened' : opened.error;
}

describe.skipIf(noOpenssl)('a target that has its key', () => {
  test('is visited over HTTP/1.1, and left with close_notify', async () => {
    const seen: (string | undefined)[] = [];
    let left = '';
    const server = createHttpsServer({ ...leaf('plain', ec), ALPNProtocols: ['http/1.1'] }, (request, response) => {
      seen.push(`${request.method} ${request.url} ${request.headers.host}`, request.headers['user-agent']);
      response.end('a page');
    });
    server.on('secureConnection', (socket) => {
      socket.on('end', () => (left = 'close_notify'));
      socket.on('error', ({ message: text }) => (left = text));
    });
    expect(await told(server)).toContain(`the certificate of ${name} was shown, so the target answered`);
    expect(seen).toEqual([`GET / ${name}`, expect.stringContaining('Mozilla')]);
    await eventually(() => left).toBe('close_notify');
  });

  test('is visited over HTTP/2, with an RSA certificate too', async () => {
    const seen: unknown[] = [];
    const server = createSecureServer(leaf('rsa', ['rsa:2048']), (request, response) => {
      seen.push(request.headers[':path'], request.headers[':authority']);
      response.end('a page');
    });
    expect(await told(server)).toContain('so the target answered');
    expect(seen).toEqual(['/', name]);
  });
});

describe.skipIf(noOpenssl)('a server with a copied chain', () => {
  /** What the server gets behind its flight, decrypted: its type and first bytes. */
  async function answered(socket: Socket, own: Leaf): Promise<readonly number[]> {
    const records = createRecordReader();
    const first = await nextRecord(socket, records);
    if (typeof first === 'string') throw new Error(first);
    const messages = createMessageReader(65_536);
    messages.push(first.bytes.subarray(recordHeaderBytes));
    const said = messages.next();
    const hello = typeof said === 'string' ? undefined : readClientHello(said.bytes);
    const suite = suiteOf(0x1301);
    if (hello === undefined || suite === undefined) throw new Error('no hello');
    const agreed = answerShare(group.x25519, hello);
    if (agreed === undefined) throw new Error('no share');
    const extensions = [
      extensionField(0x002b, uint(2, 0x0304)),
      extensionField(0x0033, uint(2, group.x25519), vector(2, agreed.share)),
    ];
    const serverHello = message(
      2,
      uint(2, 0x0303),
      randomBytes(32),
      vector(1, hello.sessionId),
      uint(2, suite.id),
      uint(1, 0),
      vector(2, ...extensions),
    );
    const transcript = createTranscript(suite);
    transcript.add(hello.bytes);
    transcript.add(serverHello);
    const secrets = handshakeSecrets(suite, agreed.secret, transcript.hash());
    const copied = { certificateFor: () => new X509Certificate(own.cert).raw, sign: () => randomBytes(64) };
    const flight = buildServerFlight(suite, transcript, secrets.server, copied, Buffer.alloc(32));
    const send = createRecordCipher(suite, secrets.server);
    socket.write(
      Buffer.concat([
        uint(1, recordType.handshake),
        uint(2, 0x0303),
        vector(2, serverHello),
        changeCipherSpecRecord,
        ...flight.map((one) => send.seal(recordType.handshake, one)),
      ]),
    );
    const answer = await nextRecord(socket, records);
    if (typeof answer === 'string') return [];
    const opened = createRecordCipher(suite, secrets.client).open(answer.bytes);
    return opened === undefined ? [] : [opened.type, ...opened.content];
  }

  test('gets decrypt_error and no request: it does not have the key', async () => {
    const own = leaf('copied', ec);
    let got: readonly number[] = [];
    const server = createServer((socket) => {
      answered(socket, own).then(
        (answer) => (got = answer),
        () => undefined,
      );
    });
    expect(await told(server)).toBe(`the answering server shows a certificate of ${name} whose key it does not have`);
    await eventually(() => got).toEqual([recordType.alert, 2, alert.decryptError]);
  });
});

describe.skipIf(noOpenssl)('the key of a certificate is proven', () => {
  const content = signedContent(Buffer.alloc(32, 7));
  const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };

  test.each<[string, number, string, readonly string[]]>([
    ['ECDSA P-256', 0x0403, 'sha256', ec],
    ['ECDSA P-384', 0x0503, 'sha384', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-384']],
    ['RSA-PSS', 0x0804, 'sha256', ['rsa:2048']],
    ['RSA-PSS', 0x0806, 'sha512', ['rsa:2048']],
  ])('by %s (%i), and by nothing else', (kind, scheme, hash, algorithm) => {
    const { cert, key } = leaf(`proof-${scheme}`, algorithm);
    const raw = new X509Certificate(cert).raw;
    const privateKey = createPrivateKey(key);
    const bytes = sign(hash, content, kind === 'RSA-PSS' ? { key: privateKey, ...pss } : privateKey);
    expect(hasItsKey(raw, content, { scheme, bytes })).toBe(true);
    expect(hasItsKey(raw, signedContent(Buffer.alloc(32, 8)), { scheme, bytes })).toBe(false);
    expect(hasItsKey(raw, content, { scheme, bytes: randomBytes(64) })).toBe(false);
    // PKCS #1 v1.5 is not for TLS 1.3, and a scheme has a type of key.
    expect(hasItsKey(raw, content, { scheme: 0x0401, bytes })).toBe(false);
    expect(hasItsKey(raw, content, { scheme: kind === 'RSA-PSS' ? 0x0403 : 0x0804, bytes })).toBe(false);
  });
});
