/**
 * The agent's side of REALITY on a TCP connection: an ordinary-looking TLS 1.3 handshake whose certificate shows
 * whether the service or the target answered. Implements the client of `docs/reality.md`.
 */
import { timingSafeEqual, type KeyObject, type X509Certificate } from 'node:crypto';
import { get } from 'node:http';
import { connect } from 'node:http2';
import { finished } from 'node:stream/promises';
import type { Duplex } from 'node:stream';
import { authKeyOf, sealClaim, shortIdFromHex, type SessionClaim } from '../../channel/reality/auth.js';
import { boundKeyOf, isSignedBy } from '../../channel/reality/certificate.js';
import { signedContent } from '../../channel/reality/server-flight.js';
import {
  alert,
  changeCipherSpecRecord,
  extension,
  legacyVersion,
  messageType,
  recordHeaderBytes,
  recordType,
  signature,
} from '../../channel/tls/codes.js';
import { createClientShares } from '../../channel/tls/key-exchange.js';
import {
  applicationSecrets,
  createTranscript,
  finishedMac,
  handshakeSecrets,
  type HandshakeSecrets,
  type Transcript,
} from '../../channel/tls/key-schedule.js';
import { createMessageReader, type HandshakeMessage } from '../../channel/tls/message-reader.js';
import { createRecordCipher } from '../../channel/tls/record-cipher.js';
import { createRecordReader, nextRecord, type RecordReader } from '../../channel/tls/record-reader.js';
import { readServerHello, whatElse, type ServerHello } from '../../channel/tls/server-hello.js';
import { createTlsStream } from '../../channel/tls/tls-stream.js';
import { createReader, message, uint, unlessMalformed, vector } from '../../channel/tls/vectors.js';
import { timedOut, withDeadline } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { err, ok, type Result } from '../../kernel/result.js';
import { buildBrowserHello } from './browser-hello.js';
import { hasItsKey, isTrusted, readCertificates, readProof } from './certificates.js';
import type { RealityAccess } from '../../channel/reality/endpoint.js';

/** The client's program version, as stated in its claim. */
const version: SessionClaim['version'] = [1, 0, 0];
/** The largest message of the service's flight; a target's certificates are the largest. */
const flightMessageMax = 128 * 1024;
const uselessRecordsMax = 32;

/** Why the handshake cannot go on, and the alert that a browser would send; without one, nothing more is sent. */
interface Fault {
  readonly text: string;
  readonly alert?: number;
}

const fault = (text: string, code?: number): Fault => ({ text, ...(code === undefined ? {} : { alert: code }) });
const isFault = (value: object): value is Fault => 'text' in value;

/** The contents of a complete flight. */
interface Flight {
  readonly protocol: string | undefined;
  /** DER, the server's own first. */
  readonly certificates: readonly Buffer[];
  /** Hash of the transcript up to the certificate; CertificateVerify signs it. */
  readonly certificateHash: Buffer;
  readonly certificateVerify: Buffer;
}

/**
 * Opens REALITY on a connection. The stream inside ends with the connection; on a failure the connection is closed.
 * @param timeoutMs for the whole handshake
 * @param roots authorities of targets' certificates; by default those that Node knows
 * @returns the stream inside, or what went wrong, for the log
 */
export async function openReality(
  socket: Duplex,
  access: RealityAccess,
  clock: Clock,
  timeoutMs: number,
  roots?: () => readonly X509Certificate[],
): Promise<Result<Duplex, string>> {
  const opened = await withDeadline(open(socket, access, clock, roots), timeoutMs);
  if (opened !== timedOut && opened.ok) return opened;
  await leave(socket);
  return opened === timedOut ? err(`no complete handshake within ${timeoutMs} ms`) : opened;
}

async function open(
  socket: Duplex,
  access: RealityAccess,
  clock: Clock,
  roots: (() => readonly X509Certificate[]) | undefined,
): Promise<Result<Duplex, string>> {
  const shares = createClientShares();
  const hello = buildBrowserHello(access.serverName, shares);
  const authKey = authKeyOf(shares.x25519, access.publicKey, hello.random);
  if (authKey === undefined) return err('pbk is not a usable X25519 public key');
  const claim = { version, seconds: Math.floor(clock.now() / 1000), shortId: shortIdFromHex(access.shortId) };
  hello.bytes.set(sealClaim(authKey, hello.random, hello.bytes, claim), hello.sessionIdAt);
  // The first record has the version of TLS 1.0, as browsers write it.
  socket.write(Buffer.concat([uint(1, recordType.handshake), uint(2, 0x0301), vector(2, hello.bytes)]));

  const records = createRecordReader();
  const serverHello = await readHello(socket, records);
  if (isFault(serverHello)) {
    if (serverHello.alert !== undefined) socket.write(plainAlert(serverHello.alert));
    return err(serverHello.text);
  }
  const { suite } = serverHello;
  const shared = shares.finish(serverHello);
  if (shared === undefined) {
    socket.write(plainAlert(alert.illegalParameter));
    return err('the key share of the answer is invalid');
  }
  const transcript = createTranscript(suite);
  transcript.add(hello.bytes);
  transcript.add(serverHello.bytes);
  const secrets = handshakeSecrets(suite, shared, transcript.hash());
  const sendHandshake = createRecordCipher(suite, secrets.client);
  const alertWith = (code: number): void =>
    void socket.write(sendHandshake.seal(recordType.alert, Uint8Array.of(2, code)));
  const flight = await readFlight(socket, records, serverHello, secrets, transcript);
  if (isFault(flight)) {
    if (flight.alert !== undefined) alertWith(flight.alert);
    return err(flight.text);
  }
  const application = applicationSecrets(suite, secrets.master, transcript.hash());
  const key = boundKeyOf(flight.certificates[0] ?? Buffer.alloc(0), authKey);
  if (key !== undefined && !provesItsKey(key, flight)) {
    alertWith(alert.decryptError);
    return err('the service did not prove the key of its certificate');
  }
  if (key === undefined && !isTrusted(flight.certificates, access.serverName, clock.now(), roots)) {
    alertWith(alert.badCertificate);
    return err('the answering server has neither the certificate of the service nor one of a known authority');
  }
  if (key === undefined && !provesChain(flight)) {
    alertWith(alert.decryptError);
    return err(`the answering server shows a certificate of ${access.serverName} whose key it does not have`);
  }
  const finished = message(messageType.finished, finishedMac(suite, secrets.client, transcript.hash()));
  socket.write(Buffer.concat([changeCipherSpecRecord, sendHandshake.seal(recordType.handshake, finished)]));
  const stream = createTlsStream({
    socket,
    records,
    receive: createRecordCipher(suite, application.server),
    send: createRecordCipher(suite, application.client),
    tickets: 'ignored',
  });
  if (key !== undefined) return ok(stream);
  await visit(stream, access.serverName, flight.protocol);
  return err(
    `the certificate of ${access.serverName} was shown, so the target answered: pbk, sid, sni or this clock is wrong, or something stands between`,
  );
}

function provesItsKey(key: KeyObject, { certificateHash, certificateVerify }: Flight): boolean {
  const proof = readProof(certificateVerify);
  return proof?.scheme === signature.ed25519 && isSignedBy(key, signedContent(certificateHash), proof.bytes);
}

function provesChain({ certificates: [own], certificateHash, certificateVerify }: Flight): boolean {
  const proof = readProof(certificateVerify);
  return own !== undefined && proof !== undefined && hasItsKey(own, signedContent(certificateHash), proof);
}

const plainAlert = (code: number): Buffer =>
  Buffer.concat([uint(1, recordType.alert), uint(2, legacyVersion), vector(2, Uint8Array.of(2, code))]);

async function readHello(socket: Duplex, records: RecordReader): Promise<ServerHello | Fault> {
  const messages = createMessageReader(flightMessageMax);
  for (;;) {
    const record = await nextRecord(socket, records);
    if (record === 'gone') return fault('the connection ended before an answer');
    if (record === 'malformed') return fault('the answer is not TLS 1.3', alert.decodeError);
    if (record.type === recordType.alert) return fault('the other side refused the hello');
    if (record.type !== recordType.handshake) return fault('the answer is not TLS 1.3', alert.unexpectedMessage);
    messages.push(record.bytes.subarray(recordHeaderBytes));
    const message = messages.next();
    if (message === 'incomplete') continue;
    const hello = message === 'malformed' || messages.partial ? undefined : readServerHello(message.bytes);
    return hello ?? otherAnswer(message === 'malformed' ? undefined : message.bytes);
  }
}

/** An answer that only the target can have given: the service always gives one that this client accepts. */
function otherAnswer(hello: Buffer | undefined): Fault {
  const text = 'the answer does not agree on TLS 1.3 with X25519 or X25519MLKEM768';
  const what = hello === undefined ? 'malformed' : whatElse(hello);
  switch (what) {
    case 'retry':
      return fault(`${text}: the target asks for another key share`, alert.handshakeFailure);
    case 'older_version':
      return fault(`${text}: the target speaks an older version`, alert.protocolVersion);
    case 'malformed':
      return fault(text, alert.decodeError);
    default:
      return what satisfies never;
  }
}

/** Reads up to the server's Finished, which ends the transcript, and verifies it. @returns the flight, or the fault */
async function readFlight(
  socket: Duplex,
  records: RecordReader,
  { suite }: ServerHello,
  secrets: HandshakeSecrets,
  transcript: Transcript,
): Promise<Flight | Fault> {
  const receive = createRecordCipher(suite, secrets.server);
  const messages = createMessageReader(flightMessageMax);
  const flight: { -readonly [K in keyof Flight]?: Flight[K] } = {};
  let useless = 0;
  for (;;) {
    const message = messages.next();
    if (message === 'malformed') return fault('a message of the handshake is too long', alert.illegalParameter);
    if (message !== 'incomplete') {
      if (message.type === messageType.finished)
        return finishFlight(
          flight,
          message,
          messages.partial,
          finishedMac(suite, secrets.server, transcript.hash()),
          transcript,
        );
      if (!takeMessage(flight, message, transcript))
        return fault(`the handshake has an unexpected message of type ${message.type}`, alert.unexpectedMessage);
      continue;
    }
    const record = await nextRecord(socket, records);
    if (record === 'gone') return fault('the connection ended within the handshake');
    if (record === 'malformed') return fault('bytes received within the handshake are not TLS 1.3', alert.decodeError);
    if (record.type === recordType.changeCipherSpec) {
      useless += 1;
      if (useless > uselessRecordsMax) return fault('too many records without content', alert.unexpectedMessage);
      continue;
    }
    const opened = receive.open(record.bytes);
    if (opened === undefined)
      return fault('a record of the handshake was not sealed with its keys', alert.badRecordMac);
    if (opened.type === recordType.alert) return fault(`the other side sent alert ${opened.content[1] ?? 0}`);
    if (opened.type !== recordType.handshake || opened.content.length === 0)
      return fault(`a record of type ${opened.type} came within the handshake`, alert.unexpectedMessage);
    messages.push(opened.content);
  }
}

/** @returns false for a message that is malformed or unexpected at this point */
function takeMessage(
  flight: { -readonly [K in keyof Flight]?: Flight[K] },
  { type, bytes, body }: HandshakeMessage,
  transcript: Transcript,
): boolean {
  transcript.add(bytes);
  if (type === messageType.encryptedExtensions && flight.certificates === undefined) {
    const protocol = readProtocol(body);
    if (protocol === undefined) return false;
    flight.protocol = protocol === '' ? undefined : protocol;
    return true;
  }
  if (type === messageType.certificate || type === messageType.compressedCertificate) {
    if (flight.certificates !== undefined) return false;
    const certificates = readCertificates(type, body);
    if (certificates === undefined) return false;
    flight.certificates = certificates;
    flight.certificateHash = transcript.hash();
    return true;
  }
  if (type === messageType.certificateVerify && flight.certificates !== undefined) {
    flight.certificateVerify = body;
    return true;
  }
  return false;
}

function finishFlight(
  flight: { readonly [K in keyof Flight]?: Flight[K] },
  finished: HandshakeMessage,
  partial: boolean,
  expected: Buffer,
  transcript: Transcript,
): Flight | Fault {
  const { protocol, certificates, certificateHash, certificateVerify } = flight;
  if (certificates === undefined || certificateHash === undefined || certificateVerify === undefined || partial)
    return fault('the handshake ended without a certificate and its proof', alert.unexpectedMessage);
  if (finished.body.length !== expected.length || !timingSafeEqual(finished.body, expected))
    return fault('the handshake was altered in transit', alert.decryptError);
  transcript.add(finished.bytes);
  return { protocol, certificates, certificateHash, certificateVerify };
}

/** The agreed protocol, empty if there is none; undefined if the message is malformed. */
function readProtocol(body: Buffer): string | undefined {
  return unlessMalformed(() => {
    const outer = createReader(body);
    const extensions = createReader(outer.vector(2));
    outer.end();
    let protocol = '';
    while (extensions.left > 0) {
      const type = extensions.uint(2);
      const content = extensions.vector(2);
      if (type !== extension.alpn) continue;
      protocol = createReader(createReader(content).vector(2)).vector(1).toString('latin1');
    }
    return protocol;
  });
}

const visitMs = 5_000;
const leaveMs = 1_000;
const pageBytesMax = 256 * 1024;

/**
 * Loads the target's first page, as a visitor would, and leaves: a client that ended the connection at once would stand
 * out. Never fails; the stream is closed afterwards.
 */
async function visit(stream: Duplex, serverName: string, protocol: string | undefined): Promise<void> {
  await withDeadline(protocol === 'h2' ? readPage(stream, serverName) : readPlainPage(stream, serverName), visitMs);
  // With close_notify, as a browser leaves.
  await leave(stream);
}

/** Ends a connection in order: what was sent last, such as an alert, arrives before the end. */
async function leave(stream: Duplex): Promise<void> {
  if (!stream.destroyed) stream.end();
  stream.resume();
  await withDeadline(
    finished(stream).catch(() => undefined),
    leaveMs,
  );
  stream.destroy();
}

const browser = { 'user-agent': 'Mozilla/5.0', accept: 'text/html,*/*' };

/** Over HTTP/1.1. */
function readPlainPage(stream: Duplex, serverName: string): Promise<void> {
  return new Promise((resolve) => {
    const page = get({
      path: '/',
      headers: { host: serverName, connection: 'keep-alive', ...browser },
      createConnection: () => stream,
    });
    const done = (): void => {
      page.off('error', done);
      page.on('error', () => undefined);
      resolve();
    };
    page.on('error', done);
    page.on('close', done);
    page.on('response', (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > pageBytesMax) done();
      });
      response.on('end', done);
      response.on('error', done);
    });
  });
}

function readPage(stream: Duplex, serverName: string): Promise<void> {
  return new Promise((resolve) => {
    const session = connect(`https://${serverName}`, { createConnection: () => stream });
    const done = (): void => {
      session.close();
      resolve();
    };
    session.on('error', done);
    const page = session.request({ ':path': '/', ':authority': serverName, ...browser });
    let bytes = 0;
    page.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > pageBytesMax) done();
    });
    page.on('error', done);
    page.on('close', done);
    page.end();
  });
}
