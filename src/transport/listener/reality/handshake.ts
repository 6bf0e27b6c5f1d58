/**
 * Completes the handshake with an agent in the shape of the target's: its ServerHello with a new key share, and records
 * of the same lengths. An observer cannot tell that the target did not answer itself. Implements
 * `docs/reality.md#the-answer-to-an-agent`.
 */
import { timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { withDeadline } from '../../../kernel/background.js';
import { createTemporaryIdentity, type TemporaryIdentity } from '../../../channel/reality/certificate.js';
import type { ClientHello } from '../../../channel/tls/client-hello.js';
import {
  alert,
  changeCipherSpecRecord,
  legacyVersion,
  messageHeaderBytes,
  messageType,
  recordType,
} from '../../../channel/tls/codes.js';
import { answerShare, type Agreed } from '../../../channel/tls/key-exchange.js';
import {
  applicationSecrets,
  createTranscript,
  finishedMac,
  handshakeSecrets,
} from '../../../channel/tls/key-schedule.js';
import { createMessageReader } from '../../../channel/tls/message-reader.js';
import { createRecordCipher, recordOverhead, type RecordCipher } from '../../../channel/tls/record-cipher.js';
import { createRecordReader, nextRecord, type RecordReader } from '../../../channel/tls/record-reader.js';
import { buildServerFlight } from '../../../channel/reality/server-flight.js';
import { withShare, type ServerHello } from '../../../channel/tls/server-hello.js';
import type { Suite } from '../../../channel/tls/suites.js';
import { createTlsStream } from '../../../channel/tls/tls-stream.js';
import { uint, vector } from '../../../channel/tls/vectors.js';
import type { TargetFlight } from './target-flight.js';
import { tuning } from './tuning.js';

/** An answer that is ready to be sent, with the steps that follow. */
export interface PreparedAnswer {
  /** The target's choice. */
  readonly suite: Suite;
  /**
   * Sends the answer and waits for the agent's Finished.
   * @param target still connected: what it sends meanwhile is imitated, and its end ends the client's connection
   * @param afterwards called when the agent has finished: returns lengths of the records that the target then sends by
   *   itself
   * @returns the bytes inside; undefined if the agent did not finish, and the socket is then closed
   */
  complete(socket: Socket, target: Socket, afterwards: () => Promise<readonly number[]>): Promise<Duplex | undefined>;
}

/** The service's half of the key exchange with one client, made once per requested group. */
export type Shares = (group: ServerHello['group']) => Agreed | undefined;

export function sharesFor(hello: ClientHello): Shares {
  const made = new Map<ServerHello['group'], Agreed | undefined>();
  return (group) => {
    if (!made.has(group)) made.set(group, answerShare(group, hello));
    return made.get(group);
  };
}

interface AnswerParts {
  readonly identity: TemporaryIdentity;
  readonly speaksSecond: boolean;
  readonly shares: Shares;
}

/** Undefined if the imitation would fail: the client's share is invalid, or the target's records are too short. */
export function prepareAnswer(
  hello: ClientHello,
  target: TargetFlight,
  authKey: Uint8Array,
  { identity, speaksSecond, shares }: AnswerParts,
): PreparedAnswer | undefined {
  const { serverHello, later } = target;
  const { suite } = serverHello;
  const agreed = shares(serverHello.group);
  if (agreed === undefined) return undefined;
  const transcript = createTranscript(suite);
  const ownHello = withShare(serverHello, agreed.share);
  transcript.add(hello.bytes);
  transcript.add(ownHello);
  const secrets = handshakeSecrets(suite, agreed.secret, transcript.hash());
  const flight = buildServerFlight(suite, transcript, secrets.server, identity, authKey);
  const application = applicationSecrets(suite, secrets.master, transcript.hash());
  const clientFinished = finishedMac(suite, secrets.client, transcript.hash());
  const sealed = sealFlight(createRecordCipher(suite, secrets.server), flight, target.lengths);
  if (sealed === undefined) return undefined;
  const send = createRecordCipher(suite, application.server);
  const bytes = Buffer.concat([
    uint(1, recordType.handshake),
    uint(2, legacyVersion),
    vector(2, ownHello),
    changeCipherSpecRecord,
    ...sealed,
    ...padding(send, later.lengths()),
  ]);

  return {
    suite,
    async complete(socket, server, afterwards) {
      const records = createRecordReader();
      socket.write(bytes);
      const receive = createRecordCipher(suite, secrets.client);
      const imitate = (more: Buffer): void => {
        later.push(more);
        for (const record of padding(send, later.lengths())) socket.write(record);
      };
      const endWithTarget = (): void => void socket.destroySoon();
      server.on('data', imitate);
      server.once('end', endWithTarget);
      server.once('close', endWithTarget);
      // It may have ended while the answer was being made.
      if (server.readableEnded || server.destroyed) endWithTarget();
      server.resume();
      const finished = await withDeadline(awaitFinished(socket, records, receive, clientFinished), tuning.finishedMs);
      server.off('data', imitate);
      server.off('end', endWithTarget);
      server.off('close', endWithTarget);
      server.destroy();
      if (finished !== 'finished') {
        if (typeof finished === 'number') socket.write(send.seal(recordType.alert, Uint8Array.of(2, finished)));
        socket.destroySoon();
        return undefined;
      }
      const lengths = await afterwards();
      // Learning the lengths takes seconds the first time, and an agent may leave meanwhile.
      if (socket.destroyed) return undefined;
      for (const record of padding(send, lengths)) socket.write(record);
      const data = createRecordCipher(suite, application.client);
      return createTlsStream({ socket, records, receive: data, send, tickets: 'unexpected', speaksSecond });
    },
  };
}

/** Lengths of our own messages, which depend on nothing else. */
const ownLengths = new Map<Suite['hash'], readonly number[]>();

/** Whether our own messages fit into the records of a target's answer. */
export function canImitate({ serverHello: { suite }, lengths }: TargetFlight): boolean {
  let own = ownLengths.get(suite.hash);
  if (own === undefined) {
    const secret = Buffer.alloc(suite.hashBytes);
    const flight = buildServerFlight(suite, createTranscript(suite), secret, createTemporaryIdentity(), secret);
    own = flight.map(({ length }) => length);
    ownLengths.set(suite.hash, own);
  }
  const needed = lengths.length === 1 ? [own.reduce((sum, length) => sum + length, 0)] : own;
  return needed.every((length, at) => recordOverhead + length <= (lengths[at] ?? 0));
}

/** Records of the given lengths; undefined if the messages do not fit into them. */
function sealFlight(
  cipher: RecordCipher,
  flight: readonly Buffer[],
  lengths: TargetFlight['lengths'],
): readonly Buffer[] | undefined {
  const contents = lengths.length === 1 ? [Buffer.concat(flight)] : flight;
  const out: Buffer[] = [];
  for (const [index, content] of contents.entries()) {
    const length = lengths[index] ?? 0;
    if (length < recordOverhead + content.length) return undefined;
    out.push(cipher.seal(recordType.handshake, content, length));
  }
  return out;
}

/** Empty records of the given lengths. */
function padding(cipher: RecordCipher, lengths: readonly number[]): readonly Buffer[] {
  const nothing = Buffer.alloc(0);
  return lengths
    .filter((length) => length >= recordOverhead)
    .map((length) => cipher.seal(recordType.applicationData, nothing, length));
}

/** Reads until the agent's Finished; later bytes stay in `records`. @returns an alert, or that the agent is gone */
async function awaitFinished(
  socket: Socket,
  records: RecordReader,
  receive: RecordCipher,
  expected: Buffer,
): Promise<'finished' | 'gone' | number> {
  const messages = createMessageReader(messageHeaderBytes + expected.length);
  for (let useless = 0; ;) {
    const record = await nextRecord(socket, records);
    if (record === 'gone') return record;
    if (record === 'malformed') return alert.decodeError;
    if (record.type === recordType.changeCipherSpec) {
      useless += 1;
      if (useless > tuning.uselessRecords || !record.bytes.equals(changeCipherSpecRecord))
        return alert.unexpectedMessage;
      continue;
    }
    // Not every library encrypts the alert of a client that does not trust the certificate.
    if (record.type === recordType.alert) return 'gone';
    const opened = receive.open(record.bytes);
    if (opened === undefined) return alert.badRecordMac;
    if (opened.type === recordType.alert) return 'gone';
    if (opened.type !== recordType.handshake || opened.content.length === 0) return alert.unexpectedMessage;
    messages.push(opened.content);
    const message = messages.next();
    if (message === 'incomplete') continue;
    if (message === 'malformed' || message.type !== messageType.finished || messages.partial)
      return alert.unexpectedMessage;
    const right = message.body.length === expected.length && timingSafeEqual(message.body, expected);
    return right ? 'finished' : alert.decryptError;
  }
}
