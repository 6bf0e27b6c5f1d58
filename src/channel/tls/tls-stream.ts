/**
 * The bytes inside an established TLS 1.3 connection, as a stream: seals written data, opens received data, with
 * backpressure both ways, key updates, alerts and an orderly close (RFC 8446, sections 4.6.3, 5 and 6). Created after
 * the handshake. Used by both sides.
 */
import { Duplex } from 'node:stream';
import { alert, messageType, plaintextMax, recordType } from './codes.js';
import { createMessageReader, type MessageReader } from './message-reader.js';
import type { RecordCipher } from './record-cipher.js';
import type { RecordReader, TlsRecord } from './record-reader.js';
import { message } from './vectors.js';

export interface TlsStreamOptions {
  /** The underlying connection. Bytes that arrived with the handshake are in `records`. */
  readonly socket: Duplex;
  readonly records: RecordReader;
  readonly receive: RecordCipher;
  readonly send: RecordCipher;
  /** A peer may send more than data after the handshake: a client receives tickets, which this one ignores. */
  readonly tickets: 'ignored' | 'unexpected';
  /** Whether writes wait for the other side's first data, as a web server's do. */
  readonly speaksSecond?: boolean;
}

/** The other side broke the protocol, or said why it ends. */
class TlsEnded extends Error {
  constructor(what: string) {
    super(`the TLS connection ended: ${what}`);
    this.name = 'TlsEnded';
  }
}

/** How many records without content are accepted in a row; each costs work and delivers nothing. */
const uselessRecordsMax = 32;
/** AES-GCM can safely seal about 2^24.5 records with one key (RFC 8446, section 5.5). */
const recordsPerKey = 2 ** 23;
/** The largest message allowed after the handshake; tickets are the largest. */
const messageMax = 66_000;

/** What records act on in a stream. */
interface Records {
  readonly receive: RecordCipher;
  readonly tickets: TlsStreamOptions['tickets'];
  /** @returns false when nobody reads */
  push(content: Buffer): boolean;
  /** The other side has sent its last byte. */
  end(): 'ended';
  /** The other side has given up. */
  gaveUp(code: number | undefined): 'ended';
  fail(code: number, what: string): 'ended';
  /** The other side wants new keys from this one too. */
  answerKeyUpdate(): void;
}

/** Opens records and acts on them. @returns a function that says for each record whether to go on reading */
function createRecordTaker({ receive, tickets, push, end, gaveUp, fail, answerKeyUpdate }: Records) {
  const messages: MessageReader = createMessageReader(messageMax);
  let useless = 0;

  const takeRecord = (record: TlsRecord): 'on' | 'full' | 'ended' => {
    const opened = receive.open(record.bytes);
    if (opened === undefined) return fail(alert.badRecordMac, 'a record was not sealed with its keys');
    const { type, content } = opened;
    if (messages.partial && type !== recordType.handshake)
      return fail(alert.unexpectedMessage, 'a handshake message was interrupted');
    switch (type) {
      case recordType.applicationData:
        if (content.length === 0) return countUseless();
        useless = 0;
        return push(content) ? 'on' : 'full';
      case recordType.alert:
        return takeAlert(content);
      case recordType.handshake:
        if (content.length === 0) return fail(alert.unexpectedMessage, 'an empty handshake record');
        messages.push(content);
        return takeMessages();
      default:
        return fail(alert.unexpectedMessage, `a record of type ${type}`);
    }
  };
  const countUseless = (): 'on' | 'ended' => {
    useless += 1;
    return useless > uselessRecordsMax ? fail(alert.unexpectedMessage, 'too many records without content') : 'on';
  };
  const takeAlert = (content: Buffer): 'ended' => {
    if (content.length !== 2) return fail(alert.decodeError, 'a malformed alert');
    if (content[1] === alert.closeNotify) return end();
    return gaveUp(content[1]);
  };
  const takeMessages = (): 'on' | 'ended' => {
    for (;;) {
      const next = messages.next();
      if (next === 'incomplete') return 'on';
      if (next === 'malformed') return fail(alert.decodeError, 'a handshake message is too long');
      if (next.type === messageType.keyUpdate) {
        const [requested] = next.body;
        if (next.body.length !== 1 || requested === undefined || requested > 1)
          return fail(alert.illegalParameter, 'a malformed KeyUpdate');
        if (messages.partial) return fail(alert.unexpectedMessage, 'a message continues across a change of keys');
        receive.update();
        if (requested === 1) answerKeyUpdate();
      } else if (next.type !== messageType.newSessionTicket || tickets === 'unexpected') {
        return fail(alert.unexpectedMessage, `a handshake message of type ${next.type}`);
      }
      if (countUseless() === 'ended') return 'ended';
    }
  };
  return takeRecord;
}

/** Seals what the stream sends, with new keys in time. */
function createSender(socket: Duplex, send: RecordCipher) {
  /** Announces new keys for the following records, and switches to them. */
  const updateKeys = (): Buffer => {
    const told = send.seal(recordType.handshake, message(messageType.keyUpdate, Uint8Array.of(0)));
    send.update();
    return told;
  };
  return {
    updateKeys,
    data(chunk: Buffer, done: (error?: Error | null) => void): void {
      const out: Buffer[] = [];
      for (let at = 0; at < chunk.length; at += plaintextMax) {
        if (send.count >= recordsPerKey) out.push(updateKeys());
        out.push(send.seal(recordType.applicationData, chunk.subarray(at, at + plaintextMax)));
      }
      socket.write(out.length === 1 && out[0] !== undefined ? out[0] : Buffer.concat(out), done);
    },
    alert(code: number): void {
      if (!socket.writable) return;
      socket.write(send.seal(recordType.alert, Uint8Array.of(code === alert.closeNotify ? 1 : 2, code)));
    },
  };
}

/** Ends a socket. A socket lost meanwhile never emits `finish`. */
function endSocket(socket: Duplex, done: () => void): void {
  const over = (): void => {
    socket.off('finish', over);
    socket.off('close', over);
    done();
  };
  if (socket.destroyed) return over();
  socket.on('finish', over);
  socket.on('close', over);
  socket.end();
}

/** The stream owns the socket: ending or destroying either one ends the other. */
export function createTlsStream(options: TlsStreamOptions): Duplex {
  const { socket, records, receive, tickets } = options;
  const sender = createSender(socket, options.send);
  let ended = false;
  let flowing = false;
  let silent = options.speaksSecond === true;
  /** An answer to a KeyUpdate is pending; it answers all that arrive meanwhile. */
  let answering = false;

  const destroyed = (what: string): 'ended' => {
    stream.destroy(new TlsEnded(what));
    return 'ended';
  };
  const fail = (code: number, what: string): 'ended' => {
    sender.alert(code);
    return destroyed(what);
  };
  const end = (): 'ended' => {
    if (!ended) stream.push(null);
    ended = true;
    return 'ended';
  };

  /** Only an alert ends the other side's direction: without one, the connection was cut, or its process died. */
  const cutShort = (): void => {
    if (!ended) stream.destroy(new TlsEnded('no close_notify came before the end of the connection'));
  };

  const takeRecord = createRecordTaker({
    receive,
    tickets,
    push(content) {
      if (silent) stream.uncork();
      silent = false;
      return stream.push(content);
    },
    end,
    gaveUp: (code) => destroyed(`the other side sent alert ${code}`),
    fail,
    answerKeyUpdate() {
      if (answering) return;
      answering = true;
      socket.write(sender.updateKeys(), () => (answering = false));
    },
  });

  /** Processes all whole records; pauses the socket while nobody reads. */
  const pump = (): void => {
    while (!ended && !stream.destroyed) {
      const record = records.next();
      if (record === 'incomplete') break;
      const taken =
        record === 'malformed' ? fail(alert.recordOverflow, 'the bytes received are not a record') : takeRecord(record);
      if (taken === 'ended') return;
      if (taken === 'full') {
        flowing = false;
        socket.pause();
        return;
      }
    }
  };

  const stream = new Duplex({
    // Like a socket, it may stay readable after the end of writing, and the other way round.
    allowHalfOpen: true,
    // One record. From Node 22 on, the default is four, all of which a connection that is cut would lose.
    highWaterMark: plaintextMax,
    read() {
      if (flowing || ended) return;
      flowing = true;
      pump();
      if (!flowing || ended || stream.destroyed) return;
      // A paused socket without data emits its end once, perhaps before anybody listened.
      if (socket.readableEnded) cutShort();
      else socket.resume();
    },
    write(chunk: Buffer, _encoding, done) {
      sender.data(chunk, done);
    },
    writev(chunks, done) {
      sender.data(Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer)), done);
    },
    final(done) {
      sender.alert(alert.closeNotify);
      endSocket(socket, done);
    },
    destroy(error, done) {
      socket.destroy();
      done(error);
    },
  });
  if (silent) stream.cork();
  // A reset by the peer is ordinary, and may come when nobody listens any more; the event would end the process.
  stream.on('error', () => undefined);
  socket.on('data', (bytes: Buffer) => {
    if (ended) return;
    records.push(bytes);
    if (flowing) pump();
  });
  socket.on('end', () => {
    // Records that nobody has read yet come first.
    if (flowing) cutShort();
  });
  socket.on('error', (error) => stream.destroy(error));
  socket.on('close', () => {
    // Bytes that arrived before the end can still be read, also those in records that nobody has opened yet.
    if (!ended && !(socket.readableEnded && socket.writableFinished)) stream.destroy();
  });
  socket.pause();
  return stream;
}
