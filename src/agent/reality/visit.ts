/** What the agent does when the target has answered: it behaves like a visitor, and leaves in order. */
import { get } from 'node:http';
import { connect } from 'node:http2';
import type { Duplex, Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { withDeadline } from '../../kernel/background.js';

const visitMs = 5_000;
const leaveMs = 1_000;
const pageBytesMax = 256 * 1024;

/**
 * Loads the target's first page, as a visitor would, and leaves: a client that ended the connection at once would stand
 * out. Never fails; the stream is closed afterwards.
 * @param protocol as agreed; empty for none
 */
export async function visit(stream: Duplex, serverName: string, protocol: string): Promise<void> {
  await withDeadline(protocol === 'h2' ? readPage(stream, serverName) : readPlainPage(stream, serverName), visitMs);
  // With close_notify, as a browser leaves.
  await leave(stream);
}

/** Ends a connection in order: what was sent last, such as an alert, arrives before the end. */
export async function leave(stream: Duplex): Promise<void> {
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
    // Never removed: an error without a listener would end the process.
    page.on('error', () => resolve());
    page.on('close', resolve);
    page.on('response', (response) => readUpTo(response, resolve));
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
    readUpTo(page, done);
    page.end();
  });
}

/** @param done called when the page is read, has failed, or is too long */
function readUpTo(page: Readable, done: () => void): void {
  let bytes = 0;
  page.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > pageBytesMax) done();
  });
  page.on('end', done);
  page.on('error', done);
  page.on('close', done);
}
