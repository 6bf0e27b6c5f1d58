/**
 * Proves the log chain of a whole stream, from a store or an archive, and names the first command that does not match.
 * A running instance checks with `log-chain.ts`. Implements `docs/log-chain.md`.
 */
import { headsNamedBy, headText, type LogHead } from '../../domain/log-chain/heads.js';
import { BrokenChainError, emptyChain } from '../../domain/log-chain/links.js';
import type { KeyringWrapped, ServiceEvent } from '../../domain/service/identity.js';
import { chainedStreams, isForeign, lastEvent, streams, type StoredEvent } from '../../kernel/event.js';
import { BrokenLogError, ownEvent } from '../../storage/broken-log.js';
import { createCommandAssembler } from '../../storage/follow.js';
import { outdatedText } from '../keyring.js';
import type { LogChain } from './log-chain.js';

export interface ProofOptions {
  readonly chain: Pick<LogChain, 'follow'>;
  /** Reads a stream from its start. */
  read(stream: string): AsyncIterable<StoredEvent>;
  /** Heads that the stream must contain, and end with if they are marked `last`. */
  readonly expected: readonly ExpectedHead[];
  readonly signal: AbortSignal;
  onProgress(events: number): void;
}

export interface ExpectedHead extends LogHead {
  readonly last: boolean;
  /** The stream that names it; undefined for a head kept outside the log. */
  readonly namedBy?: string;
}

/**
 * The heads that the chained streams name of each other.
 * @internal exported for tests @throws whatever `read` throws
 */
export async function namedHeads(read: ProofOptions['read'], signal: AbortSignal): Promise<readonly ExpectedHead[]> {
  const heads: ExpectedHead[] = [];
  for (const namedBy of chainedStreams) {
    for await (const event of read(namedBy)) {
      if (signal.aborted) return heads;
      for (const head of isForeign(event) ? [] : (headsNamedBy(event) ?? []))
        heads.push({ ...head, last: false, namedBy });
    }
  }
  return heads;
}

export type LogProof =
  | { readonly kind: 'proven'; readonly proofs: readonly StreamProof[] }
  /** No command carries a MAC, or there are no commands. */
  | { readonly kind: 'no_chain' }
  /** One sentence for each problem. */
  | { readonly kind: 'damaged'; readonly proofs: readonly StreamProof[]; readonly problems: readonly string[] };

/** Why a start refuses the keyring, which has no chain of its own; undefined when it does not. */
async function keyringProblem(read: ProofOptions['read'], signal: AbortSignal): Promise<string | undefined> {
  let wrapped: KeyringWrapped['data'] | undefined;
  let recorded: Extract<ServiceEvent, { readonly type: 'KeyringRecorded' }>['data'] | undefined;
  for (const stream of [streams.keyring, streams.service]) {
    for await (const event of read(stream)) {
      if (signal.aborted) return undefined;
      if (isForeign(event)) continue;
      const own = event as object as KeyringWrapped | ServiceEvent;
      if (own.type === 'KeyringWrapped') wrapped = own.data;
      if (own.type === 'KeyringRecorded') recorded = own.data;
    }
  }
  return wrapped && outdatedText(wrapped, recorded);
}

/**
 * Proves all chains, that each stream holds the heads that the others name, and that the keyring is the newest.
 * @throws whatever `read` throws
 */
export async function proveChains(
  options: Omit<ProofOptions, 'onProgress'> & { onProgress(events: number, stream: string): void },
): Promise<LogProof> {
  const { read, signal, onProgress } = options;
  const expected = [...options.expected, ...(await namedHeads(read, signal))];
  const proofs: StreamProof[] = [];
  for (const stream of chainedStreams) {
    const progress = (events: number): void => onProgress(events, stream);
    proofs.push(await proveStream(stream, { ...options, expected, onProgress: progress }));
  }
  const stripped = proofs.every(({ commands, finding }) => commands === 0 && finding?.unlinked !== false);
  if (stripped) return { kind: 'no_chain' };
  const problems = proofs.flatMap(({ finding, missing }) => [
    ...(finding === undefined ? [] : [finding.text]),
    ...missing,
  ]);
  const keyring = await keyringProblem(read, signal);
  if (keyring !== undefined) problems.push(keyring);
  return problems.length > 0 ? { kind: 'damaged', proofs, problems } : { kind: 'proven', proofs };
}

export interface StreamProof {
  readonly stream: string;
  readonly commands: number;
  /** Where the proven part ends; undefined when nothing is proven. */
  readonly head: LogHead | undefined;
  /** The first break; the stream is not read beyond it. */
  readonly finding: Finding | undefined;
  /** One sentence for each expected head that the stream does not contain. */
  readonly missing: readonly string[];
}

export interface Finding {
  /** The revision of the command that does not match, or is missing. */
  readonly revision: number;
  /** One sentence, without a full stop. */
  readonly text: string;
  /** True for a command without a MAC. */
  readonly unlinked: boolean;
}

/**
 * Proves one stream. When the signal aborts, returns what was proven so far.
 * @internal exported for tests @throws whatever `read` throws
 */
export async function proveStream(stream: string, options: ProofOptions): Promise<StreamProof> {
  const { chain, read, signal } = options;
  const expected = options.expected.filter((one) => one.stream === stream);
  const byRevision = new Map<number, ExpectedHead[]>();
  for (const one of expected) byRevision.set(one.revision, [...(byRevision.get(one.revision) ?? []), one]);
  const found = new Set<ExpectedHead>();
  const assembler = createCommandAssembler();
  let head = emptyChain;
  // `revision`: of the last proven command; `next`: of the next event.
  let [proven, revision, next] = [0, -1, 0];
  let broken: Omit<Finding, 'revision'> | undefined;

  /** @throws BrokenChainError, BrokenLogError */
  function prove(event: StoredEvent): void {
    if (event.revision !== next) throw new BrokenLogError(gapText(stream, next, event.revision));
    next += 1;
    for (const command of assembler.add([ownEvent(event)])) {
      head = chain.follow(head, command);
      revision = lastEvent(command).revision;
      proven += 1;
      for (const one of byRevision.get(revision) ?? []) if (one.mac === head.mac) found.add(one);
    }
  }

  for await (const event of read(stream)) {
    if (signal.aborted) break;
    try {
      prove(event);
    } catch (error) {
      if (!(error instanceof BrokenChainError || error instanceof BrokenLogError)) throw error;
      broken = { text: error.message, unlinked: error instanceof BrokenChainError && error.at.kind === 'unlinked' };
      break;
    }
    options.onProgress(next);
  }
  if (assembler.pending() && !signal.aborted)
    broken ??= { text: `${stream} ends in the middle of a command`, unlinked: false };
  return {
    stream,
    commands: proven,
    head: proven === 0 ? undefined : { stream, revision, mac: head.mac },
    finding: broken && { ...broken, revision: revision + 1 },
    missing: expected.flatMap((one) => problemOf(one, found.has(one), revision, broken !== undefined)),
  };
}

const gapText = (stream: string, expected: number, revision: number): string =>
  `${stream} continues at revision ${revision} instead of ${expected}: ` +
  (revision > expected ? 'events are missing' : 'events are repeated');

function problemOf(expected: ExpectedHead, found: boolean, end: number, broken: boolean): readonly string[] {
  const { stream, revision, last, namedBy } = expected;
  const name = `the ${namedBy === undefined ? 'expected ' : ''}head ${headText(expected)}${namedBy === undefined ? '' : `, which ${namedBy} names`}`;
  if (found) return last && end > revision ? [`${stream} continues to revision ${end} after ${name}`] : [];
  if (revision > end) {
    return [broken ? `${name} is after the break` : `${stream} ends at revision ${end}: it was cut off before ${name}`];
  }
  return [`${stream} does not hold ${name}: it was rewritten`];
}
