/** Reads the records of a handshake one by one from a socket, which is paused in between. */
import type { Duplex } from 'node:stream';
import type { RecordReader, TlsRecord } from './record-reader.js';

/**
 * The next record; `gone` when the socket ends, or fails, before it is whole. One call at a time. What came after the record
 * stays in `records`.
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
