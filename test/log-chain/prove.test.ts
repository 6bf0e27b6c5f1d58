/**
 * The proof of a log chain: any single change of a random log is found, and the first command that is not what was written
 * is named (`docs/log-chain.md`). What folds check as they go must meet the same standard.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BrokenChainError, emptyChain } from '../../src/domain/log-chain/links.js';
import { lastEvent, streams, type RecordedCommand, type RecordedEvent } from '../../src/kernel/event.js';
import { canonicalJson } from '../../src/kernel/json.js';
import { headText, parseHead, type LogHead } from '../../src/domain/log-chain/heads.js';
import { namedHeads, proveStream, type ExpectedHead, type StreamProof } from '../../src/security/log-chain/prove.js';
import { storedEvent } from '../../src/storage/broken-log.js';
import { createCommandAssembler } from '../../src/storage/follow.js';
import { histories } from '../support/fleet-histories.js';
import { logOf, play } from '../support/fleet-play.js';
import { chainedLog, testLogChain } from '../support/log-chain.js';

const signal = new AbortController().signal;

/** Proves events as if a store held them. */
function prove(
  events: readonly RecordedEvent[],
  expected: readonly ExpectedHead[] = [],
  chain = testLogChain(),
): Promise<StreamProof> {
  // As a store hands them out.
  const read = () => each(events.map(storedEvent));
  return proveStream(streams.fleet, { chain, read, expected, signal, onProgress: () => undefined });
}

const eventsOf = (commands: readonly RecordedCommand[]): readonly RecordedEvent[] =>
  commands.flatMap(({ events }) => events);

/** Revisions without gaps, as if the store had been written anew. */
const renumbered = (events: readonly RecordedEvent[]): readonly RecordedEvent[] =>
  events.map((event, revision) => ({ ...event, revision, position: 10 * (revision + 1) }));

/** A history of the same forty moves for a seed. */
const history = (seed: number): readonly RecordedCommand[] =>
  createCommandAssembler().add(
    renumbered(eventsOf(logOf(play(fc.sample(histories(40), { seed, numRuns: 10 }).flat().slice(0, 40)).steps))),
  );

type ChainedLog = readonly RecordedCommand[];

/** Made once, because most of the time goes into them. */
const someLogs = Array.from({ length: 12 }, (_, seed) => chainedLog(history(seed)));
const logs = fc.constantFrom(...someLogs);

/** The first place at which two logs differ; -1 when one is a beginning of the other. */
function firstDifference(
  before: readonly { readonly events: unknown }[],
  after: readonly { readonly events: unknown }[],
): number {
  return after.findIndex(
    ({ events }, at) => before[at] === undefined || canonicalJson(events) !== canonicalJson(before[at].events),
  );
}

async function* each<T>(values: readonly T[]): AsyncGenerator<T> {
  yield* values;
}

/** How many commands, and events, of a changed log are those that were written, from its beginning. */
function untouched(commands: ChainedLog, after: readonly RecordedEvent[]): { commands: number; events: number } {
  let [count, events] = [0, 0];
  for (const { events: written } of commands) {
    const stored = after.slice(events, events + written.length);
    if (canonicalJson(stored) !== canonicalJson(written)) break;
    count += 1;
    events += written.length;
  }
  return { commands: count, events };
}

describe('a log that nobody touched', () => {
  it('is proven from its beginning to its head', async () => {
    await fc.assert(
      fc.asyncProperty(logs, async (commands) => {
        const last = lastEvent(commands.at(-1)!);
        expect(await prove(eventsOf(commands))).toEqual({
          stream: streams.fleet,
          commands: commands.length,
          head: { stream: streams.fleet, revision: last.revision, mac: last.metadata.link!.mac },
          finding: undefined,
          missing: [],
        });
      }),
      { numRuns: 30 },
    );
  });

  it('has an equal chain whatever the order of the fields in its JSON', async () => {
    await fc.assert(
      fc.asyncProperty(logs, async (commands) => {
        const turned = JSON.parse(
          JSON.stringify(eventsOf(commands), (_key, value: unknown) =>
            typeof value === 'object' && value !== null && !Array.isArray(value)
              ? Object.fromEntries(Object.entries(value).toReversed())
              : value,
          ),
        ) as RecordedEvent[];
        expect((await prove(turned)).finding).toBeUndefined();
      }),
      { numRuns: 10 },
    );
  });

  it.each([
    ['another key', testLogChain(99)],
    ['another installation, under the same key', testLogChain(7, 'another installation')],
  ])('is not proven as the log of %s', async (_, chain) => {
    const { finding } = await prove(eventsOf(history(1)), [], chain);
    expect(finding?.unlinked).toBe(true);
    const proof = await prove(eventsOf(chainedLog(history(1))), [], chain);
    expect(proof).toMatchObject({ commands: 0, head: undefined, finding: { revision: 0, unlinked: false } });
    expect(proof.finding?.text).toMatch(/another installation wrote it$/);
  });
});

/** Every place in a JSON value that holds no object, as a path. */
function leaves(value: unknown, path: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  const inner = Object.entries(value).flatMap(([key, entry]) => leaves(entry, [...path, key]));
  return inner.length === 0 ? [path] : inner;
}

function withChanged(value: unknown, [key, ...rest]: readonly string[], change: (leaf: unknown) => unknown): unknown {
  if (key === undefined) return change(value);
  if (Array.isArray(value))
    return value.map((entry, at) => (String(at) === key ? withChanged(entry, rest, change) : entry));
  const record = value as Record<string, unknown>;
  return { ...record, [key]: withChanged(record[key], rest, change) };
}

const changed = (leaf: unknown): unknown => {
  if (typeof leaf === 'string') return leaf === '' ? 'x' : `${leaf.slice(0, -1)}${leaf.endsWith('A') ? 'B' : 'A'}`;
  if (typeof leaf === 'number') return leaf + 1;
  return typeof leaf === 'boolean' ? !leaf : 'was empty';
};

type Tamper = (log: ChainedLog, pick: (below: number) => number) => readonly RecordedEvent[];

const tampers: { readonly [what: string]: Tamper } = {
  'one value of an event altered': (commands, pick) => {
    const events = eventsOf(commands);
    const at = pick(events.length);
    const { id, type, data, metadata } = events[at]!;
    const places = leaves({ id, type, data, metadata });
    const path = places[pick(places.length)]!;
    return events.with(at, { ...events[at]!, ...(withChanged({ id, type, data, metadata }, path, changed) as object) });
  },
  'a field removed from an event': (commands, pick) => {
    const events = eventsOf(commands);
    const at = pick(events.length);
    const keys = Object.keys(events[at]!.metadata);
    const key = keys[pick(keys.length)]!;
    const metadata = Object.fromEntries(Object.entries(events[at]!.metadata).filter(([name]) => name !== key));
    return events.with(at, { ...events[at]!, metadata: metadata as unknown as RecordedEvent['metadata'] });
  },
  'commands dropped, with a gap': (commands, pick) => eventsOf(commands.toSpliced(pick(commands.length), 1 + pick(2))),
  'commands dropped, and the rest numbered anew': (commands, pick) =>
    renumbered(eventsOf(commands.toSpliced(pick(commands.length), 1 + pick(2)))),
  'an event dropped, and the rest numbered anew': (commands, pick) => {
    const events = eventsOf(commands);
    return renumbered(events.toSpliced(pick(events.length), 1));
  },
  'a command copied to another place': (commands, pick) =>
    renumbered(eventsOf(commands.toSpliced(pick(commands.length), 0, commands[pick(commands.length)]!))),
  'a command inserted that was never written': (commands, pick) => {
    const model = commands[pick(commands.length)]!;
    const id = `forged ${pick(1000)}`;
    const forged = model.events.map((event) => ({
      ...event,
      id: `${id} ${event.id}`,
      metadata: { ...event.metadata, command: { ...event.metadata.command, id } },
    }));
    return renumbered(
      eventsOf(commands).toSpliced(eventsOf(commands.slice(0, pick(commands.length))).length, 0, ...forged),
    );
  },
  'two commands swapped': (commands, pick) => {
    const [a, b] = [pick(commands.length), pick(commands.length)];
    return renumbered(eventsOf(commands.with(a, commands[b]!).with(b, commands[a]!)));
  },
  'two events swapped': (commands, pick) => {
    const events = eventsOf(commands);
    const [a, b] = [pick(events.length), pick(events.length)];
    return renumbered(events.with(a, events[b]!).with(b, events[a]!));
  },
  'two events of a command swapped': (commands, pick) => {
    const events = eventsOf(commands);
    const at = pick(events.length - 1);
    return renumbered(events.with(at, events[at + 1]!).with(at + 1, events[at]!));
  },
  'the links of two commands swapped': (commands, pick) => {
    const events = eventsOf(commands);
    const ends = events.flatMap(({ metadata }, at) => (metadata.link === undefined ? [] : [at]));
    const [a, b] = [ends[pick(ends.length)]!, ends[pick(ends.length)]!];
    const link = (from: number, to: number) => ({
      ...events[to]!,
      metadata: { ...events[to]!.metadata, link: events[from]!.metadata.link! },
    });
    return events.with(a, link(b, a)).with(b, link(a, b));
  },
};

/** Picks numbers from a list, again from its start at its end. */
function picker(numbers: readonly number[]): (below: number) => number {
  let at = 0;
  return (below) => numbers[at++ % numbers.length]! % Math.max(1, below);
}

const picks = fc.array(fc.nat(), { minLength: 3, maxLength: 6 });

describe.each(Object.entries(tampers))('a log with %s', (_what, tamper) => {
  it('is found, and the first place that is not what was written is named', async () => {
    await fc.assert(
      fc.asyncProperty(logs, picks, async (log, numbers) => {
        const after = tamper(log, picker(numbers));
        const { commands, events } = untouched(log, after);
        const { finding, commands: proven } = await prove(after);
        // Nothing was changed, or the end was cut off: only a head that was kept elsewhere tells.
        if (events === after.length) {
          expect(finding).toBeUndefined();
          return;
        }
        expect(proven).toBe(commands);
        expect(finding?.revision).toBe(events);
      }),
      { numRuns: 30 },
    );
  });

  it('stops a fold before it takes anything from behind that place', () => {
    fc.assert(
      fc.property(logs, picks, (log, numbers) => {
        const chain = testLogChain();
        const folded: RecordedCommand[] = [];
        let [head, revision] = [emptyChain, 0];
        try {
          for (const command of createCommandAssembler().add(tamper(log, picker(numbers)))) {
            if (command.events[0].revision !== revision) throw new Error('a gap');
            head = chain.follow(head, command);
            revision += command.events.length;
            folded.push(command);
          }
        } catch (error) {
          if (error instanceof BrokenChainError) expect(chain.broken()).toEqual(error.at);
        }
        expect(firstDifference(log, folded)).toBe(-1);
      }),
      { numRuns: 30 },
    );
  });
});

it('a stream that ends in the middle of a command is not proven', async () => {
  const commands = chainedLog(history(5));
  const at = commands.findIndex(({ events }) => events.length > 1);
  const cut = [...eventsOf(commands.slice(0, at)), commands[at]!.events[0]];
  expect((await prove(cut)).finding).toEqual({
    revision: cut.length - 1,
    unlinked: false,
    text: 'svc-fleet ends in the middle of a command',
  });
});

describe('a log whose end was cut off', () => {
  const commands = chainedLog(history(9));
  const headAt = (index: number): LogHead => {
    const { revision, metadata } = lastEvent(commands[index]!);
    return { stream: streams.fleet, revision, mac: metadata.link!.mac };
  };
  const last = commands.length - 1;
  const missing = async (to: number, expected: LogHead, mustEnd = false): Promise<readonly string[]> =>
    (await prove(eventsOf(commands.slice(0, to + 1)), [{ ...expected, last: mustEnd }])).missing;

  it('is proven as far as it goes, and shown by a head that was kept', async () => {
    const kept = headAt(last);
    expect((await prove(eventsOf(commands.slice(0, -3)))).finding).toBeUndefined();
    expect(await missing(last, kept)).toEqual([]);
    expect(await missing(last - 3, kept)).toEqual([
      `svc-fleet ends at revision ${headAt(last - 3).revision}: it was cut off before the expected head ${headText(kept)}`,
    ]);
  });

  it('is told from one that has grown, and from one that was written anew', async () => {
    const kept = headAt(last - 3);
    expect(await missing(last, kept)).toEqual([]);
    expect(await missing(last, kept, true)).toEqual([
      `svc-fleet continues to revision ${headAt(last).revision} after the expected head ${headText(kept)}`,
    ]);
    const other = { ...kept, mac: headAt(last).mac };
    expect(await missing(last, other)).toEqual([
      `svc-fleet does not hold the expected head ${headText(other)}: it was rewritten`,
    ]);
  });

  it('is shown by a head as text, and no other text is one', () => {
    const kept = headAt(last);
    expect(parseHead(` ${headText(kept)}\n`)).toEqual(kept);
    for (const text of ['', 'svc-fleet', 'svc-fleet@1', `svc-fleet@x:${kept.mac}`, headText(kept).slice(0, -1)]) {
      expect(parseHead(text)).toBeUndefined();
    }
  });
});

describe('the heads that streams name of one another', () => {
  const commands = chainedLog(history(3));
  const { revision, metadata } = lastEvent(commands.at(-1)!);
  const named: LogHead = { stream: streams.fleet, revision, mac: metadata.link!.mac };
  const naming = { ...lastEvent(commands[0]!), type: 'LogHeadsRecorded', data: { heads: [named] } } as unknown;
  const heads = () =>
    namedHeads((stream) => each(stream === streams.accounts ? [naming as RecordedEvent] : []), signal);

  it('are held by a stream that nobody touched', async () => {
    expect(await heads()).toEqual([{ ...named, last: false, namedBy: streams.accounts }]);
    expect((await prove(eventsOf(commands), await heads())).missing).toEqual([]);
  });

  it('show that one of them was rolled back alone', async () => {
    const { missing, finding } = await prove(eventsOf(commands.slice(0, -1)), await heads());
    expect(finding).toBeUndefined();
    expect(missing).toEqual([
      expect.stringMatching(
        /^svc-fleet ends at revision \d+: it was cut off before the head svc-fleet@.*, which svc-accounts names$/,
      ),
    ]);
  });
});
