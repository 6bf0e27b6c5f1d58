/**
 * What an agent does that meets the target: it looks at the first page, as a visitor would, and leaves. A client that ended
 * the connection at once would stand out.
 */
import { connect } from 'node:http2';
import type { Duplex } from 'node:stream';
import { withDeadline } from '../../kernel/background.js';

const visitMs = 5_000;
const pageBytesMax = 256 * 1024;

/** Never fails; the stream is closed afterwards. */
export async function visit(stream: Duplex, serverName: string, protocol: string | undefined): Promise<void> {
  if (protocol === 'h2') await withDeadline(readPage(stream, serverName), visitMs);
  stream.destroy();
}

function readPage(stream: Duplex, serverName: string): Promise<void> {
  return new Promise((resolve) => {
    const session = connect(`https://${serverName}`, { createConnection: () => stream });
    const done = (): void => {
      session.destroy();
      resolve();
    };
    session.on('error', done);
    const page = session.request({ ':path': '/', 'user-agent': 'Mozilla/5.0', accept: 'text/html,*/*' });
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
