/**
 * What a server answers to the agent's hello: its ServerHello in the clear, and its encrypted messages up to Finished (RFC
 * 8446, section 4). `handshake.ts` judges whose certificate it shows.
 */
import { timingSafeEqual } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { alert, extension, messageType, recordHeaderBytes, recordType } from '../../channel/tls/codes.js';
import { finishedMac, type HandshakeSecrets, type Transcript } from '../../channel/tls/key-schedule.js';
import { createMessageReader, type HandshakeMessage } from '../../channel/tls/message-reader.js';
import { createRecordCipher } from '../../channel/tls/record-cipher.js';
import { nextRecord, type RecordReader } from '../../channel/tls/record-reader.js';
import { readServerHello, whatElse, type ServerHello } from '../../channel/tls/server-hello.js';
import { createReader, readList, readWhole, unlessMalformed } from '../../channel/tls/vectors.js';
import { readCertificates } from './certificates.js';

/** The largest message of the service's flight; a target's certificates are the largest. */
const flightMessageMax = 128 * 1024;
const uselessRecordsMax = 32;

/** Why the handshake cannot go on, and the alert that a browser would send; without one, nothing more is sent. */
export interface Fault {
  readonly text: string;
  readonly alert: number | undefined;
}

export const fault = (text: string, code?: number): Fault => ({ text, alert: code });
export const isFault = (value: object): value is Fault => 'text' in value;

/** The contents of a complete flight. */
export interface Flight {
  /** Empty if none was agreed. */
  readonly protocol: string;
  /** DER, the server's own first; at least one. */
  readonly certificates: readonly Buffer[];
  /** Hash of the transcript up to the certificate; CertificateVerify signs it. */
  readonly certificateHash: Buffer;
  readonly certificateVerify: Buffer;
}

export async function readHello(socket: Duplex, records: RecordReader): Promise<ServerHello | Fault> {
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
export async function readFlight(
  socket: Duplex,
  records: RecordReader,
  { suite }: ServerHello,
  secrets: HandshakeSecrets,
  transcript: Transcript,
): Promise<Flight | Fault> {
  const messages = createFlightReader(socket, records, { suite, secret: secrets.server });
  const unexpected = ({ type }: HandshakeMessage): Fault =>
    fault(`the handshake has an unexpected message of type ${type}`, alert.unexpectedMessage);

  const extensions = await messages.next();
  if (isFault(extensions)) return extensions;
  const protocol = extensions.type === messageType.encryptedExtensions ? readProtocol(extensions.body) : undefined;
  if (protocol === undefined) return unexpected(extensions);
  transcript.add(extensions.bytes);

  const shown = await messages.next();
  if (isFault(shown)) return shown;
  const certificates = readCertificates(shown.type, shown.body);
  if (certificates === undefined) return unexpected(shown);
  transcript.add(shown.bytes);
  const certificateHash = transcript.hash();

  const proof = await messages.next();
  if (isFault(proof)) return proof;
  if (proof.type !== messageType.certificateVerify) return unexpected(proof);
  transcript.add(proof.bytes);

  const finished = await messages.next();
  if (isFault(finished)) return finished;
  // After it the keys change, which nothing may straddle.
  if (finished.type !== messageType.finished || messages.partial) return unexpected(finished);
  const expected = finishedMac(suite, secrets.server, transcript.hash());
  if (finished.body.length !== expected.length || !timingSafeEqual(finished.body, expected))
    return fault('the handshake was altered in transit', alert.decryptError);
  transcript.add(finished.bytes);
  return { protocol, certificates, certificateHash, certificateVerify: proof.body };
}

/** Reads the encrypted messages of a handshake one by one. */
function createFlightReader(
  socket: Duplex,
  records: RecordReader,
  keys: { readonly suite: ServerHello['suite']; readonly secret: Uint8Array },
) {
  const receive = createRecordCipher(keys.suite, keys.secret);
  const messages = createMessageReader(flightMessageMax);
  let useless = 0;
  return {
    get partial() {
      return messages.partial;
    },
    async next(): Promise<HandshakeMessage | Fault> {
      for (;;) {
        const message = messages.next();
        if (message === 'malformed') return fault('a message of the handshake is too long', alert.illegalParameter);
        if (message !== 'incomplete') return message;
        const record = await nextRecord(socket, records);
        if (record === 'gone') return fault('the connection ended within the handshake');
        if (record === 'malformed')
          return fault('bytes received within the handshake are not TLS 1.3', alert.decodeError);
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
    },
  };
}

/** The agreed protocol, empty if there is none; undefined if the message is malformed. */
function readProtocol(body: Buffer): string | undefined {
  return unlessMalformed(() => {
    const list = readWhole(body, (outer) => outer.vector(2));
    const extensions = new Map(readList(list, (one) => [one.uint(2), one.vector(2)] as const));
    const agreed = extensions.get(extension.alpn);
    return agreed === undefined ? '' : createReader(createReader(agreed).vector(2)).vector(1).toString('latin1');
  });
}
