/**
 * The program of the thread that writes a backup from the events that the main thread sends, verifies the file as `log:verify`
 * does, and proves its log chains. Secrets stay sealed: the thread has no key that opens one.
 */
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { streams, type RecordedEvent } from '../kernel/event.js';
import { createLogChain } from '../security/log-chain/log-chain.js';
import { proveChains } from '../security/log-chain/prove.js';
import type { LogItem } from '../storage/event-store.js';
import { exportLog } from '../storage/log-archive/export-log.js';
import { streamOfArchive } from '../storage/log-archive/read-archive.js';
import { verifyArchive } from '../storage/log-archive/verify-log.js';
import { archiveScope, logCheck } from './archive-scope.js';
import { failureOf } from './failure.js';
import type { Message, Order, Part, WrittenArchive } from './write-archive.js';

if (parentPort === null) throw new Error('this program is started as a worker thread, not by itself');
const port = parentPort;
const send = (message: Message): void => port.postMessage(message);
const { chainKey, ...order } = workerData as Order;
const { path } = order;
// The main thread ends this one.
const unending = { check: logCheck, signal: new AbortController().signal, onProgress: () => undefined };

async function* subscribe(): AsyncGenerator<LogItem, void, void> {
  for (;;) {
    const answered = once(port, 'message') as Promise<[Part]>;
    send({ kind: 'more' });
    const [part] = await answered;
    if (part === undefined) break;
    yield { kind: 'events', events: JSON.parse(part) as RecordedEvent[] };
  }
  yield { kind: 'caught_up' };
}

async function write(): Promise<WrittenArchive> {
  await exportLog({ ...archiveScope, ...unending, ...order, eventStore: { subscribe }, upTo: null });
  const { log, problems, problemCount } = await verifyArchive(path, unending);
  refuse(problems, problemCount);
  const proof = await proveChains({
    ...unending,
    chain: createLogChain(chainKey),
    read: (stream) => streamOfArchive(path, stream),
    expected: [],
  });
  if (proof.kind === 'damaged') refuse(proof.problems, proof.problems.length);
  if (proof.kind === 'no_chain') refuse(['it has no log chain'], 1);
  if (log.streams.every(({ stream }) => stream !== streams.keyring)) refuse(['it lacks the keyring'], 1);
  return { bytes: (await stat(path)).size, events: log.events };
}

function refuse([first]: readonly string[], count: number): void {
  if (first === undefined) return;
  const more = count > 1 ? `, and ${count - 1} more problems` : '';
  throw new Error(`what was written does not verify: ${first}${more}`);
}

function finish(message: Message): void {
  // The main thread ends this one, which would otherwise seem to be lost before its answer is read.
  port.ref();
  send(message);
}

write().then(
  (written) => finish({ kind: 'written', ...written }),
  (error: unknown) => finish({ kind: 'failed', ...failureOf(error) }),
);
