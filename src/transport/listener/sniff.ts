/**
 * Reads the first bytes of a socket until its protocol is clear, and puts every byte back. The judgement is in
 * `first-bytes.ts`, what follows from it in `listener.ts`.
 */
import type { Socket } from 'node:net';
import { judgeFirstBytes } from './first-bytes.js';

export type Sniffed =
  | 'h2c'
  | 'foreign'
  /** The full preface did not arrive in time. */
  | 'silent'
  /** Ended or failed before the protocol was clear. */
  | 'gone';

/**
 * Calls `done` once. For `h2c` the socket is then paused with all its bytes unread.
 * @param waitMs how long the whole preface may take, in milliseconds
 */
export function sniff(socket: Socket, waitMs: number, done: (result: Sniffed) => void): void {
  let bytes: Buffer = Buffer.alloc(0);
  const finish = (result: Sniffed): void => {
    clearTimeout(timer);
    socket.off('data', read);
    socket.off('end', gone);
    socket.off('close', gone);
    done(result);
  };
  const gone = (): void => finish('gone');
  const read = (chunk: Buffer): void => {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    const protocol = judgeFirstBytes(bytes);
    if (protocol === 'undecided') return;
    socket.pause();
    socket.off('data', read);
    socket.unshift(bytes);
    finish(protocol);
  };
  const timer = setTimeout(() => finish('silent'), waitMs);
  timer.unref();
  socket.on('data', read);
  socket.on('end', gone);
  socket.on('close', gone);
}
