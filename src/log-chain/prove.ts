/**
 * Proves the log chain of a whole stream, of a store or an archive, and says what happened to the first command that does
 * not fit. Reads a stream again when one is found (`diagnose.ts`). Not how an instance checks what it folds
 * (`log-chain.ts`). Implements `docs/operations.md#the-log-chain`.
 */
import type { ChainHead } from '../domain/log-chain/links.js';
import { BrokenChainError, emptyChain, followChain } from '../domain/log-chain/links.js';
import type { RecordedEvent } from '../kernel/event.js';
import { lastEvent } from '../kernel/event.js';
import { commandsOf } from './commands-of.js';
import type { StoredCommand } from './commands-of.js';
import { diagnose } from './diagnose.js';
import type { Finding } from './diagnose.js';
import type { LogHead } from './heads.js';
import type { LogChainKeys } from './keys.js';

export interface ProofOptions {
  readonly keys: LogChainKeys;
  /** Reads a stream from its start. */
  read(stream: string): AsyncIterable<RecordedEvent>;
  /** Heads that were kept elsewhere: the stream must hold each, and end on those with `last`. */
  readonly expected: readonly ExpectedHead[];
  readonly signal: AbortSignal;
  onProgress(events: number): void;
}

export interface ExpectedHead extends LogHead {
  readonly last: boolean;
}

export interface StreamProof {
  readonly stream: string;
  /** Commands that carry a valid link. */
  readonly linked: number;
  /** Commands before the chain began; its first link covers them. */
  readonly unlinked: number;
  /** Of the last command; undefined when no chain has begun. */
  readonly head: LogHead | undefined;
  /** What is wrong with the first command that does not fit; the stream is not read further. */
  readonly finding: Finding | undefined;
  /** One sentence per expected head that the stream does not hold. */
  readonly missing: readonly string[];
}

/** Returns what was proven so far when the signal aborts. @throws what `read` throws */
export async function proveStream(stream: string, options: ProofOptions): Promise<StreamProof> {
  const { keys, read, signal } = options;
  const expected = options.expected.filter((one) => one.stream === stream);
  const found = new Set<ExpectedHead>();
  let head: ChainHead = emptyChain;
  let [linked, unlinked, events, revision] = [0, 0, 0, -1];
  let finding: Finding | undefined;
  for await (const command of commandsOf(read(stream))) {
    if (signal.aborted) break;
    const before = head;
    const next = nextHead(head, revision, command, keys);
    if (next === undefined) {
      finding = await diagnose({ head: before, revision, command, keys, read: () => read(stream) });
      break;
    }
    head = next;
    revision = lastEvent(command).revision;
    if (head.keyId === null) unlinked += 1;
    else linked += 1;
    for (const one of expected) if (one.revision === revision && one.mac === head.mac) found.add(one);
    events += command.events.length;
    options.onProgress(events);
  }
  const missing = expected.flatMap((one) => problemOf(one, found.has(one), revision, finding !== undefined));
  return {
    stream,
    linked,
    unlinked,
    head: head.keyId === null ? undefined : { stream, revision, mac: head.mac },
    finding,
    missing,
  };
}

/** The head after a command, undefined when the command does not fit. @param revision of the event before it */
function nextHead(
  head: ChainHead,
  revision: number,
  command: StoredCommand,
  keys: Pick<LogChainKeys, 'macOf'>,
): ChainHead | undefined {
  if (!command.whole || command.events[0].revision !== revision + 1) return undefined;
  try {
    return followChain(head, command, keys.macOf);
  } catch (error) {
    if (error instanceof BrokenChainError) return undefined;
    throw error;
  }
}

function problemOf(expected: ExpectedHead, found: boolean, end: number, broken: boolean): readonly string[] {
  const { stream, revision, mac, last } = expected;
  const name = `the expected head ${stream}@${revision}:${mac}`;
  if (found) return last && end > revision ? [`${stream} goes on to revision ${end} behind ${name}`] : [];
  if (revision > end) {
    return [
      broken ? `${name} lies behind the break` : `${stream} ends at revision ${end}: it was cut off before ${name}`,
    ];
  }
  return [`${stream} does not hold ${name}: it was written anew`];
}
