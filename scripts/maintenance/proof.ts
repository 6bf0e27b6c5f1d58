/** The proof of the log chains for the maintenance commands, over a store or an archive, and its printed form. */
import { openWrappedKeyring } from '../../src/app/installation/keyring.js';
import { headText, parseHead } from '../../src/domain/log-chain/heads.js';
import type { KeyringWrapped } from '../../src/domain/service/identity.js';
import { chainedStreams, isForeign, streams, type StoredEvent } from '../../src/kernel/event.js';
import { createLogChain, logChainKeyOf } from '../../src/security/log-chain/log-chain.js';
import { proveChains, type ExpectedHead, type LogProof, type StreamProof } from '../../src/security/log-chain/prove.js';
import type { MasterKey } from '../../src/security/master-key.js';
import { wholeStream, type LogReader } from '../../src/storage/event-store.js';
import { streamOfArchive } from '../../src/storage/log-archive/read-archive.js';
import { say, UsageError } from './command-line.js';
import { createProgressBar, type ProgressBar } from './progress-bar.js';

/** Reads a stream from its start; in an archive, it may be anywhere. */
type ReadStream = (stream: string) => AsyncIterable<StoredEvent>;

export const sourceOfStore =
  (eventStore: Pick<LogReader, 'read'>): ReadStream =>
  (stream) =>
    wholeStream(eventStore, stream);

export const sourceOfArchive =
  (path: string): ReadStream =>
  (stream) =>
    streamOfArchive(path, stream);

/** @throws UsageError for a text that is not a head of a chained stream */
export function expectedHeads(contains: readonly string[], endsOn: readonly string[]): readonly ExpectedHead[] {
  const parse = (text: string, last: boolean): ExpectedHead => {
    const head = parseHead(text);
    if (head === undefined || !chainedStreams.includes(head.stream)) {
      throw new UsageError(`"${text}" is not a head: expected STREAM@REVISION:MAC, as log:verify prints it`);
    }
    return { ...head, last };
  };
  return [...contains.map((text) => parse(text, false)), ...endsOn.map((text) => parse(text, true))];
}

/**
 * Proves all chains, and that each stream holds the heads that the others name.
 * @throws WrongMasterKeyError; what `read` throws; ServiceError `unavailable`
 */
export async function proveLog(
  read: ReadStream,
  masterKey: MasterKey,
  expected: readonly ExpectedHead[],
  signal: AbortSignal,
): Promise<LogProof> {
  let wrapped: KeyringWrapped | undefined;
  for await (const event of read(streams.keyring)) {
    if (!isForeign(event)) wrapped = event as unknown as KeyringWrapped;
  }
  if (wrapped === undefined) return withoutKeyring(read);
  const chain = createLogChain(logChainKeyOf(openWrappedKeyring(masterKey, wrapped.data)));
  let shown: string | undefined;
  let bar: ProgressBar | undefined;
  const onProgress = (events: number, stream: string): void => {
    if (stream !== shown) {
      bar?.finish();
      [shown, bar] = [stream, createProgressBar(`proving ${stream}`, 'events')];
    }
    bar?.update(0, events);
  };
  const proof = await proveChains({ chain, read, expected, signal, onProgress });
  bar?.finish();
  return proof;
}

async function withoutKeyring(read: ReadStream): Promise<LogProof> {
  for (const stream of chainedStreams) {
    for await (const _event of read(stream)) {
      return { kind: 'damaged', proofs: [], problems: [`the log lacks the keyring: ${streams.keyring} is empty`] };
    }
  }
  return { kind: 'no_chain' };
}

const number = (value: number): string => value.toLocaleString('en-US');

/** Prints the heads, which can be kept elsewhere. */
export function printProofs(proofs: readonly StreamProof[]): void {
  for (const { stream, commands, head, finding } of proofs) {
    if (finding !== undefined || head === undefined) continue;
    say(`  ${stream.padEnd(16)} ${number(commands).padStart(12)} commands proven; head ${headText(head)}`);
  }
}
