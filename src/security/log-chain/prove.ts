/**
 * Proves the log chain of a whole stream, from a store or an archive, and names the first command that does not fit. The
 * checks of a running instance are in `log-chain.ts`. Implements `docs/log-chain.md`.
 */
import type { ChainHead } from '../../domain/log-chain/links.js';
import { BrokenChainError, emptyChain, followChain } from '../../domain/log-chain/links.js';
import type { RecordedEvent } from '../../kernel/event.js';
import { lastEvent } from '../../kernel/event.js';
import { BrokenLogError, createCommandAssembler } from '../../storage/follow.js';
import type { LogChainKeys } from './keys.js';
import type { LogHead } from './log-chain.js';

export interface ProofOptions {
  readonly keys: LogChainKeys;
  /** Reads a stream from its start. */
  read(stream: string): AsyncIterable<RecordedEvent>;
  /** Heads that were kept elsewhere. The stream must contain each, and end on one marked `last`. */
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
  /** Commands before the chain began; the first link covers them. */
  readonly unlinked: number;
  /** The MAC of the last command; undefined when no chain has begun. */
  readonly head: LogHead | undefined;
  /** The first break; the stream is not read beyond it. */
  readonly finding: Finding | undefined;
  /** One sentence for each expected head that the stream does not contain. */
  readonly missing: readonly string[];
}

export interface Finding {
  /** The revision of the command that does not fit, or is missing. */
  readonly revision: number;
  /** One sentence, without a full stop. */
  readonly text: string;
}

/**
 * Proves one stream. When the signal aborts, returns what was proven so far.
 * @throws whatever `read` throws
 */
export async function proveStream(stream: string, options: ProofOptions): Promise<StreamProof> {
  const { keys, read, signal } = options;
  const expected = options.expected.filter((one) => one.stream === stream);
  const found = new Set<ExpectedHead>();
  const assembler = createCommandAssembler();
  let head: ChainHead = emptyChain;
  // `revision`: of the last proven command; `next`: of the next event.
  let [linked, unlinked, revision, next] = [0, 0, -1, 0];
  let broken: string | undefined;

  /** @throws BrokenChainError, BrokenLogError */
  function prove(event: RecordedEvent): void {
    if (event.revision !== next) throw new BrokenLogError(gapText(stream, next, event.revision));
    next += 1;
    for (const command of assembler.add([event])) {
      head = followChain(head, command, keys.macOf);
      revision = lastEvent(command).revision;
      if (head.keyId === null) unlinked += 1;
      else linked += 1;
      for (const one of expected) if (one.revision === revision && one.mac === head.mac) found.add(one);
    }
  }

  for await (const event of read(stream)) {
    if (signal.aborted) break;
    try {
      prove(event);
    } catch (error) {
      if (!(error instanceof BrokenChainError || error instanceof BrokenLogError)) throw error;
      const foreign = error instanceof BrokenChainError && error.at.kind === 'unknown_key';
      broken = foreign ? `${error.message} (the given one is ${keys.current})` : error.message;
      break;
    }
    options.onProgress(next);
  }
  if (assembler.pending() && !signal.aborted) broken ??= `${stream} ends in the middle of a command`;
  return {
    stream,
    linked,
    unlinked,
    head: head.keyId === null ? undefined : { stream, revision, mac: head.mac },
    finding: broken === undefined ? undefined : { revision: revision + 1, text: broken },
    missing: expected.flatMap((one) => problemOf(one, found.has(one), revision, broken !== undefined)),
  };
}

const gapText = (stream: string, expected: number, revision: number): string =>
  `${stream} continues at revision ${revision} instead of ${expected}: ` +
  (revision > expected ? 'events are missing' : 'events are repeated');

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
