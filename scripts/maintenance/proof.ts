/** The proof of the log chain for the maintenance commands: of a store or an archive, and how it is printed. */
import { streams } from '../../src/kernel/event.js';
import type { RecordedEvent } from '../../src/kernel/event.js';
import { headText, parseHead } from '../../src/security/log-chain/log-chain.js';
import type { LogChainKeys } from '../../src/security/log-chain/keys.js';
import { keysOf } from '../../src/security/log-chain/keys.js';
import { proveStream } from '../../src/security/log-chain/prove.js';
import type { ExpectedHead, StreamProof } from '../../src/security/log-chain/prove.js';
import type { MasterKey } from '../../src/security/master-key.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { wholeStream } from '../../src/storage/event-store.js';
import { readArchive } from '../../src/storage/log-archive/read-archive.js';
import { say, UsageError } from './command-line.js';
import { createProgressBar } from './progress-bar.js';

/** The streams that have a log chain. */
export const chainedStreams: readonly string[] = [streams.fleet, streams.accounts];

export interface LogSource {
  /** Reads a stream from its start; an archive holds it at any place. */
  read(stream: string): AsyncIterable<RecordedEvent>;
}

export const sourceOfStore = (eventStore: EventStore): LogSource => ({
  read: (stream) => wholeStream(eventStore, stream),
});

export const sourceOfArchive = (path: string): LogSource => ({
  async *read(stream) {
    for await (const part of readArchive(path)) {
      if (part.kind === 'end') return;
      for (const item of part.items) if (item.kind === 'event' && item.event.stream === stream) yield item.event;
    }
  },
});

/** @throws UsageError for a text that is no head of a stream with a chain */
export function expectedHeads(contains: readonly string[], endsOn: readonly string[]): readonly ExpectedHead[] {
  const parse = (text: string, last: boolean): ExpectedHead => {
    const head = parseHead(text);
    if (head === undefined || !chainedStreams.includes(head.stream)) {
      throw new UsageError(`"${text}" is no head: expected STREAM@REVISION:MAC, as log:verify prints it`);
    }
    return { ...head, last };
  };
  return [...contains.map((text) => parse(text, false)), ...endsOn.map((text) => parse(text, true))];
}

/** @throws what the source throws; ServiceError `unavailable` */
export async function proveLog(
  { read }: LogSource,
  masterKey: MasterKey,
  expected: readonly ExpectedHead[],
  signal: AbortSignal,
): Promise<readonly StreamProof[]> {
  const keys: LogChainKeys = await keysOf(read(streams.logChain), masterKey);
  const proofs: StreamProof[] = [];
  for (const stream of chainedStreams) {
    const bar = createProgressBar(`proving ${stream}`, 'events');
    const onProgress = (events: number): void => bar.update(0, events);
    proofs.push(await proveStream(stream, { keys, read, expected, signal, onProgress }));
    bar.finish();
  }
  return proofs;
}

/** What is wrong, one sentence each. */
export function problemsOf(proofs: readonly StreamProof[]): readonly string[] {
  return proofs.flatMap(({ finding, missing }) => [...(finding === undefined ? [] : [finding.text]), ...missing]);
}

const number = (value: number): string => value.toLocaleString('en-US');

/** Prints the heads, which can be kept elsewhere. */
export function printProofs(proofs: readonly StreamProof[]): void {
  for (const { stream, linked, unlinked, head, finding } of proofs) {
    if (finding !== undefined) continue;
    const before = unlinked === 0 ? '' : `, ${number(unlinked)} before the chain began`;
    if (head !== undefined) {
      say(`  ${stream.padEnd(16)} ${number(linked).padStart(12)} commands proven${before}; head ${headText(head)}`);
    } else if (unlinked > 0) {
      say(`  ${stream.padEnd(16)} no log chain yet: it begins at the next start of the service`);
    }
  }
}
