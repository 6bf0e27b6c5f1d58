/**
 * A separate process with many readers of the event feed, each on a connection of its own. It looks at each event of the reading
 * ones: whether the revisions of `svc-fleet` follow each other, and how long ago its command was sent, which the name of what it
 * created says.
 */
import { request } from 'node:http';
import type { ClientRequest } from 'node:http';
import { answerParent } from '../child.js';
import { sharedClock } from '../figures.js';

export interface Readers {
  readonly url: string;
  readonly readers: readonly { readonly token: string; readonly from: string; readonly query: string }[];
}

export interface ReadSoFar {
  /** Events of each reader. */
  readonly counts: readonly number[];
  /** Events that did not follow the one before them. */
  readonly outOfOrder: number;
  readonly ended: number;
  /** Milliseconds from the sending of a command until a reader had it, of every eighth event. */
  readonly delays: readonly number[];
}

interface Reader {
  count: number;
  revision: number | undefined;
}

const readers: Reader[] = [];
const calls: ClientRequest[] = [];
let [outOfOrder, ended] = [0, 0];
let delays: number[] = [];

function take(reader: Reader, block: string): 'ready' | undefined {
  if (block.includes('event: ready')) return 'ready';
  const revision = Number(/"position":"svc-fleet@(\d+)"/.exec(block)?.[1]);
  if (Number.isNaN(revision)) return undefined;
  if (reader.revision !== undefined && revision !== reader.revision + 1) outOfOrder += 1;
  reader.revision = revision;
  reader.count += 1;
  if (revision % 8 !== 0) return undefined;
  const sentAt = /"name":"e-([0-9.]+)-/.exec(block)?.[1];
  if (sentAt !== undefined) delays.push(sharedClock() - Number(sentAt));
  return undefined;
}

function open(url: string, { token, from, query }: Readers['readers'][number]): Promise<void> {
  const reader: Reader = { count: 0, revision: undefined };
  readers.push(reader);
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' };
    const call = request(`${url}/api/events${query}`, { headers, agent: false, localAddress: from });
    calls.push(call);
    call.on('error', reject);
    call.on('response', (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`a stream was answered ${answer.statusCode}`));
      let text = '';
      answer.setEncoding('latin1');
      answer.on('data', (chunk: string) => {
        text += chunk;
        let begin = 0;
        for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n', begin)) {
          if (take(reader, text.slice(begin, end)) === 'ready') resolve();
          begin = end + 2;
        }
        text = text.slice(begin);
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
    delays = [];
  },
  result: (): ReadSoFar => ({ counts: readers.map(({ count }) => count), outOfOrder, ended, delays }),
  closeAll() {
    for (const call of calls) call.destroy();
  },
});
