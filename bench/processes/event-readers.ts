/**
 * A separate process with many readers of the event feed, each on a connection of its own. Every twentieth is checked
 * closely: whether the revisions of `svc-fleet` follow each other, and how long ago each command was sent, which the
 * name of the resource that it created says. The others must all have the same checksum of what they received. Checking
 * all of them closely would cost more than the service does.
 */
import { request, type ClientRequest } from 'node:http';
import { crc32 } from 'node:zlib';
import { answerParent } from '../child.js';
import { sharedClock } from '../figures.js';

export interface Readers {
  readonly url: string;
  readonly readers: readonly { readonly token: string; readonly from: string; readonly query: string }[];
}

export interface ReadSoFar {
  /** Of each reader, since it was ready. */
  readonly bytes: readonly { readonly length: number; readonly checksum: number }[];
  /** Events of each reader that is checked closely. */
  readonly counts: readonly number[];
  /** Events that did not follow the one before them. */
  readonly outOfOrder: number;
  readonly ended: number;
  /** Milliseconds from the sending of a command until a reader had it. */
  readonly delays: readonly number[];
}

interface Reader {
  ready: boolean;
  length: number;
  checksum: number;
  readonly close: { text: string; count: number; revision: number | undefined } | undefined;
}

const closeEvery = 20;
const readers: Reader[] = [];
const calls: ClientRequest[] = [];
const delays: number[] = [];
let [outOfOrder, ended] = [0, 0];

function lookAt(close: NonNullable<Reader['close']>, chunk: Buffer): void {
  const blocks = (close.text + chunk.toString('latin1')).split('\n\n');
  close.text = blocks.pop() ?? '';
  for (const block of blocks) {
    const revision = Number(/"position":"svc-fleet@(\d+)"/.exec(block)?.[1]);
    if (Number.isNaN(revision)) continue;
    if (close.revision !== undefined && revision !== close.revision + 1) outOfOrder += 1;
    close.revision = revision;
    close.count += 1;
    const sentAt = /"name":"e-([0-9.]+)-/.exec(block)?.[1];
    if (sentAt !== undefined) delays.push(sharedClock() - Number(sentAt));
  }
}

function open(url: string, { token, from, query }: Readers['readers'][number]): Promise<void> {
  const isClose = readers.length % closeEvery === 0;
  const close = isClose ? { text: '', count: 0, revision: undefined } : undefined;
  const reader: Reader = { ready: false, length: 0, checksum: 0, close };
  readers.push(reader);
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' };
    const call = request(`${url}/api/events${query}`, { headers, agent: false, localAddress: from });
    calls.push(call);
    call.on('error', reject);
    call.on('response', (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`a stream was answered ${answer.statusCode}`));
      answer.on('data', (chunk: Buffer) => {
        if (!reader.ready) {
          reader.ready = chunk.includes('event: ready');
          if (reader.ready) resolve();
          return;
        }
        reader.length += chunk.length;
        reader.checksum = crc32(chunk, reader.checksum);
        if (reader.close !== undefined) lookAt(reader.close, chunk);
      });
      answer.on('close', () => (ended += 1));
      answer.on('error', () => undefined);
    });
    call.end();
  });
}

answerParent({
  async open({ url, readers: more }: Readers) {
    for (let from = 0; from < more.length; from += 50) {
      await Promise.all(more.slice(from, from + 50).map((one) => open(url, one)));
    }
  },
  result: (): ReadSoFar => ({
    bytes: readers.map(({ length, checksum }) => ({ length, checksum })),
    counts: readers.flatMap(({ close }) => (close === undefined ? [] : [close.count])),
    outOfOrder,
    ended,
    delays,
  }),
});
