/**
 * The links of a log chain, without a key: a command is linked to the one before it, and one that does not fit is refused
 * with what is wrong about it (`docs/log-chain.md`). Which changes of a whole log are found is tested with
 * real keys in `test/log-chain/prove.test.ts`.
 */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  BrokenChainError,
  chainBreakText,
  emptyChain,
  followChain,
  linkCommand,
  linkText,
  storedLink,
  type BreakKind,
  type ChainHead,
  type ChainMac,
} from '../../src/domain/log-chain/links.js';
import { decideLogHeads, namesHeads, type LogHead } from '../../src/domain/log-chain/heads.js';
import type { ProposedEvent, RecordedCommand, RecordedEvent } from '../../src/kernel/event.js';
import type { JsonObject } from '../../src/kernel/json.js';

const stream = 'svc-test';
const mac: ChainMac = {
  installationId: 'installation',
  macOf: (text) => createHash('sha256').update(text).digest('base64url'),
};

const event = (type: string, data: object = {}, link?: unknown): ProposedEvent => ({
  id: `id of ${type}`,
  type,
  data: data as JsonObject,
  metadata: {
    command: { id: `command of ${type}`, index: 0, count: 1 },
    actor: { type: 'system', id: 'test', name: 'test' },
    request_id: 'test',
    occurred_at: '2025-01-01T00:00:00.000Z',
    schema_version: 1,
    ...(link === undefined ? {} : { link: link as NonNullable<ProposedEvent['metadata']['link']> }),
  },
});
const heads: readonly LogHead[] = [{ stream: 'svc-other', revision: 4, mac: 'of it' }];
const naming = event('LogHeadsRecorded', { heads });

const stored = (events: readonly ProposedEvent[], revision = 7): RecordedCommand => ({
  stream,
  events: events.map((one, index): RecordedEvent => ({
    ...one,
    stream,
    revision: revision + index,
    position: index,
  })) as unknown as RecordedCommand['events'],
});
const withLink = (events: readonly ProposedEvent[], link: unknown): readonly ProposedEvent[] =>
  events.map((one, index) =>
    index === events.length - 1 ? { ...one, metadata: { ...one.metadata, link: link as never } } : one,
  );

/** Links a command and checks it as it would be stored. */
function add(head: ChainHead, ...events: readonly ProposedEvent[]): ChainHead {
  const linked = linkCommand(head, stream, events, mac);
  expect(followChain(head, stored(withLink(events, linked.link)), mac)).toEqual(linked.head);
  return linked.head;
}

function broken(head: ChainHead, events: readonly ProposedEvent[]): BreakKind | undefined {
  try {
    followChain(head, stored(events), mac);
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(BrokenChainError);
    const { at, message, name } = error as BrokenChainError;
    expect(at).toEqual({ kind: at.kind, stream, revision: 7, commandId: events[0]!.metadata.command.id });
    expect([message, name]).toEqual([chainBreakText(at), 'BrokenChainError']);
    return at.kind;
  }
}

describe('a chain', () => {
  it('links each command to the one before it, and remembers the heads that its stream has named last', () => {
    const { link, head } = linkCommand(emptyChain, stream, [event('A')], mac);
    expect(link).toEqual({ after: '', mac: head.mac });
    expect(linkCommand(head, stream, [event('B')], mac).link.after).toBe(head.mac.slice(0, 11));
    const second = add(add(emptyChain, event('C'), event('D')), naming);
    expect([emptyChain.named, second.named]).toEqual([[], heads]);
    expect(add(second, event('E')).named).toEqual(heads);
  });

  it('depends on the installation, the stream, what stood before, and on every field of the events, but not on its own link', () => {
    const text = (events: readonly ProposedEvent[], name = stream, before = 'before', installation = 'installation') =>
      linkText(installation, name, before, events);
    const plain = [event('A'), event('B')];
    const changed = [
      text([event('A')]),
      text(plain, 'svc-other'),
      text(plain, stream, 'other'),
      text(plain, stream, 'before', 'other'),
      text([event('B'), event('A')]),
      text([event('A', { changed: true }), event('B')]),
      text([event('A'), { ...event('B'), id: 'other' }]),
      // Only the last event carries the link of its command, and nothing but the link is left out.
      text([event('A', {}, { after: '', mac: '' }), event('B')]),
      text([event('A'), { ...event('B'), metadata: { ...event('B').metadata, request_id: 'other' } }]),
    ];
    expect(new Set([text(plain), ...changed]).size).toBe(changed.length + 1);
    expect(text(withLink(plain, { after: 'x', mac: 'y' }))).toBe(text(plain));
  });
});

describe('a command breaks the chain', () => {
  /** A chain that has begun, and the link of its next command. */
  function begun() {
    const head = add(emptyChain, event('first'));
    return { head, good: linkCommand(head, stream, [event('A')], mac).link };
  }
  type Begun = ReturnType<typeof begun>;

  it.each<[string, BreakKind | undefined, (chain: Begun) => readonly [ChainHead, readonly ProposedEvent[]]]>([
    ['that fits: it does not', undefined, ({ head, good }) => [head, [event('A', {}, good)]]],
    ['without a MAC', 'unlinked', ({ head }) => [head, [event('A')]]],
    ['without a MAC, as the first', 'unlinked', () => [emptyChain, [event('A')]]],
    ['of later, as the first', 'misplaced', ({ good }) => [emptyChain, [event('A', {}, good)]]],
    [
      'that was written after another one',
      'misplaced',
      ({ head, good }) => [head, [event('A', {}, { ...good, after: 'elsewhere' })]],
    ],
    ['whose events were altered', 'altered', ({ head, good }) => [head, [event('A', { altered: true }, good)]]],
    ['whose MAC was altered', 'altered', ({ head, good }) => [head, [event('A', {}, { ...good, mac: 'other' })]]],
    ['whose link is null', 'misplaced', ({ head }) => [head, [event('A', {}, null)]]],
    ['whose link is a text', 'misplaced', ({ head }) => [head, [event('A', {}, 'text')]]],
    ['whose link is empty', 'misplaced', ({ head }) => [head, [event('A', {}, {})]]],
  ])('%s', (_, kind, made) => {
    const [before, events] = made(begun());
    expect(broken(before, events)).toBe(kind);
  });

  it('and the sentence says where, and what is wrong', () => {
    const sentence = chainBreakText({ kind: 'unlinked', stream, revision: 3, commandId: 'c' });
    expect(sentence).toMatch(/svc-test.* 3.* c: .*no MAC/);
    const kinds: readonly BreakKind[] = ['unlinked', 'misplaced', 'altered'];
    const sentences = kinds.map((kind) => chainBreakText({ kind, stream, revision: 3, commandId: 'c' }));
    expect(new Set(sentences).size).toBe(kinds.length);
  });

  it.each([
    [undefined, undefined],
    [null, {}],
    ['text', {}],
    [
      { after: 'x', mac: 'y' },
      { after: 'x', mac: 'y' },
    ],
  ])('whatever its link was altered to: %j', (link, read) => {
    expect(storedLink(stored([link === undefined ? event('A') : event('A', {}, link)]))).toEqual(read);
  });
});

describe('heads of other streams', () => {
  const at = (revision: number): readonly LogHead[] => [{ stream: 'svc-other', revision, mac: `of ${revision}` }];
  const decided = (named: readonly LogHead[], revision: number) =>
    decideLogHeads({ named }, { type: 'RecordLogHeads', heads: at(revision) });

  it('are named, unless the stream has named them or later ones', () => {
    expect(decided([], 4)).toEqual({ ok: true, value: [{ type: 'LogHeadsRecorded', data: { heads: at(4) } }] });
    expect(decided(at(3), 4)).toMatchObject({ value: [{ type: 'LogHeadsRecorded' }] });
    expect(decided(at(4), 4)).toEqual({ ok: true, value: [] });
    expect(decided(at(5), 4)).toEqual({ ok: true, value: [] });
  });

  it('are named by one kind of event', () => {
    expect([naming, event('A'), event('toString')].map((one) => namesHeads(stored([one])))).toEqual([
      true,
      false,
      false,
    ]);
  });
});
