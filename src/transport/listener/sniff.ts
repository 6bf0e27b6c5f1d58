/**
 * Reads the first bytes of a socket until it is clear what it speaks, and puts every byte back. Decides nothing: the
 * judgement is in `first-bytes.ts`, what follows from it in `listener.ts`.
 */
import type { Socket } from 'node:net';
import { judgeFirstBytes } from './first-bytes.js';

export type Sniffed =
  | 'h2c'
  | 'foreign'
  /** No full preface in time. */
  | 'silent'
  /** Ended or failed before it was clear. */
  | 'gone';

/**
 * Calls back once. For `h2c` the socket is paused with all its bytes unread.
 * @param waitMs how long the whole preface may take, in milliseconds
 */
export function sniff(socket: Socket, waitMs: number, done: (sniffed: Sniffed) => void): void {
  let bytes: Buffer = Buffer.alloc(0);
  const finish = (sniffed: Sniffed): void => {
    clearTimeout(timer);
    socket.off('data', read);
    socket.off('end', gone);
    socket.off('close', gone);
    done(sniffed);
  };
  const gone = (): void => finish('gone');
  const read = (chunk: Buffer): void => {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    const judged = judgeFirstBytes(bytes);
    if (judged === 'undecided') return;
    socket.pause();
    socket.off('data', read);
    socket.unshift(bytes);
    finish(judged);
  };
  const timer = setTimeout(() => finish('silent'), waitMs);
  timer.unref();
  socket.on('data', read);
  socket.on('end', gone);
  socket.on('close', gone);
}
