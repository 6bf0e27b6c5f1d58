/**
 * Splits a byte stream into TLS records (RFC 8446, section 5.1), and reads the records of a handshake one by one from a
 * socket. Does not look inside them.
 */
import type { Duplex } from 'node:stream';
import { ciphertextMax, recordHeaderBytes } from './codes.js';

export interface TlsRecord {
  readonly type: number;
  /** The record with its header. */
  readonly bytes: Buffer;
}

export interface RecordReader {
  push(bytes: Buffer): void;
  /** The next whole record; `malformed`, for good, once the bytes are not a record. */
  next(): TlsRecord | 'incomplete' | 'malformed';
  /** How many pushed bytes have not been returned yet. */
  readonly waiting: number;
  /** Those bytes. */
  rest(): Buffer;
}

export function createRecordReader(): RecordReader {
  let parts: Buffer[] = [];
  let size = 0;
  /** Joined only when a whole record has arrived, so that many small pieces cost only one copy. */
  const joined = (): Buffer => {
    const whole = parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts, size);
    parts = [whole];
    return whole;
  };
  /** Bytes needed before another look is worthwhile. */
  let wanted = recordHeaderBytes;
  return {
    push(bytes) {
      if (bytes.length === 0) return;
      parts.push(bytes);
      size += bytes.length;
    },
    next() {
      if (size < wanted) return 'incomplete';
      const bytes = joined();
      const type = bytes[0] ?? 0;
      const length = bytes.readUInt16BE(3);
      if (type < 20 || type > 23 || bytes[1] !== 3 || length > ciphertextMax) return 'malformed';
      wanted = recordHeaderBytes + length;
      if (size < wanted) return 'incomplete';
      const record = bytes.subarray(0, wanted);
      parts = size === wanted ? [] : [bytes.subarray(wanted)];
      size -= wanted;
      wanted = recordHeaderBytes;
      return { type, bytes: record };
    },
    get waiting() {
      return size;
    },
    rest: () => (size === 0 ? Buffer.alloc(0) : joined()),
  };
}

/**
 * The next record of a socket, which is paused in between; `gone` when the socket ends or fails before the record is
 * complete. One call at a time. Bytes after the record stay in `records`.
 */
export function nextRecord(socket: Duplex, records: RecordReader): Promise<TlsRecord | 'malformed' | 'gone'> {
  const there = records.next();
  if (there !== 'incomplete') return Promise.resolve(there);
  if (socket.destroyed || socket.readableEnded) return Promise.resolve('gone');
  return new Promise((resolve) => {
    const done = (result: TlsRecord | 'malformed' | 'gone'): void => {
      socket.off('data', read);
      socket.off('end', gone);
      socket.off('close', gone);
      socket.pause();
      resolve(result);
    };
    const read = (bytes: Buffer): void => {
      records.push(bytes);
      const record = records.next();
      if (record !== 'incomplete') done(record);
    };
    const gone = (): void => done('gone');
    socket.on('data', read);
    socket.on('end', gone);
    socket.on('close', gone);
    socket.resume();
  });
}
