/**
 * The links of a log chain, without a key: a command is linked to the one before it, and one that does not fit is refused
 * with what is wrong about it (`docs/log-chain.md`). What changes of a whole log are found is tested with
 * real keys in `test/log-chain/prove.test.ts`.
 */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  decideLogChain,
  BrokenChainError,
  chainBreakText,
  emptyChain,
  followChain,
  linkCommand,
  linkText,
  storedLink,
} from '../../src/domain/log-chain/links.js';
import { auditOfLogChainEvent, isOfLogChain } from '../../src/domain/log-chain/declaration.js';
import type { LogChainEvent } from '../../src/domain/log-chain/declaration.js';
import type { BreakKind, ChainHead, MacOf } from '../../src/domain/log-chain/links.js';
import type { ProposedEvent, RecordedCommand, RecordedEvent } from '../../src/kernel/event.js';
import type { JsonObject } from '../../src/kernel/json.js';

const stream = 'svc-test';
/** Two keys are known. */
const macOf: MacOf = (keyId, text) =>
  keyId === null || ['first', 'second'].includes(keyId)
    ? createHash('sha256').update(`${keyId} ${text}`).digest('base64url')
    : undefined;

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
const started = (key_id: string, link?: unknown) => event('LogChainStarted', { key_id }, link);
const keyChanged = (from: string, to: string) => event('LogChainKeyChanged', { key_id: { from, to } });

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
  const linked = linkCommand(head, stream, events, macOf);
  expect(followChain(head, stored(linked.link === undefined ? events : withLink(events, linked.link)), macOf)).toEqual(
    linked.head,
  );
  return linked.head;
}

function broken(head: ChainHead, events: readonly ProposedEvent[]): BreakKind | undefined {
  try {
    followChain(head, stored(events), macOf);
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
  it('is a digest of all commands until it begins, is linked from then on, and goes over to another key', () => {
    const before = add(emptyChain, event('A'), event('B'));
    expect(before.keyId).toBeNull();
    expect(linkCommand(emptyChain, stream, [event('A')], macOf).link).toBeUndefined();
    const { link, head } = linkCommand(before, stream, [started('first')], macOf);
    expect(link).toEqual({ after: before.mac.slice(0, 11), mac: head.mac });
    expect(head.keyId).toBe('first');
    const second = add(add(head, event('C'), event('D')), keyChanged('first', 'second'));
    expect(second.keyId).toBe('second');
    expect(add(second, event('E')).keyId).toBe('second');
    // A second beginning changes no key.
    expect(add(second, started('first')).keyId).toBe('second');
  });

  it('depends on the stream, on what stood before, and on every field of the events, but not on its own link', () => {
    const text = (events: readonly ProposedEvent[], name = stream, before = 'before') => linkText(name, before, events);
    const plain = [event('A'), event('B')];
    const changed = [
      text([event('A')]),
      text(plain, 'svc-other'),
      text(plain, stream, 'other'),
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

  it('is not continued under a key that is not known', () => {
    expect(() => linkCommand(emptyChain, stream, [started('third')], macOf)).toThrow(
      `the key third of the log chain of ${stream} is not known`,
    );
  });
});

describe('a command breaks the chain', () => {
  /** A chain that has begun, and the link of its next command. */
  function begun() {
    const head = add(emptyChain, started('first'));
    return { head, good: linkCommand(head, stream, [event('A')], macOf).link! };
  }
  type Begun = ReturnType<typeof begun>;

  it.each<[string, BreakKind | undefined, (chain: Begun) => readonly [ChainHead, readonly ProposedEvent[]]]>([
    ['that fits: it does not', undefined, ({ head, good }) => [head, [event('A', {}, good)]]],
    ['without a MAC', 'unlinked', ({ head }) => [head, [event('A')]]],
    ['with a MAC, before a chain has begun', 'too_early', ({ good }) => [emptyChain, [event('A', {}, good)]]],
    [
      'that was written after another one',
      'misplaced',
      ({ head, good }) => [head, [event('A', {}, { ...good, after: 'elsewhere' })]],
    ],
    ['whose events were altered', 'altered', ({ head, good }) => [head, [event('A', { altered: true }, good)]]],
    ['whose MAC was altered', 'altered', ({ head, good }) => [head, [event('A', {}, { ...good, mac: 'other' })]]],
    ['under a key that is not known', 'unknown_key', () => [emptyChain, [started('third', { after: '', mac: 'any' })]]],
    ['that begins without a MAC', 'unlinked', () => [emptyChain, [started('first')]]],
    [
      'that begins with no data at all',
      'unknown_key',
      () => [emptyChain, [{ ...started('', { after: '' }), data: null as never }]],
    ],
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
    const kinds: readonly BreakKind[] = ['unlinked', 'too_early', 'misplaced', 'altered', 'unknown_key'];
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

describe('the events of the chain', () => {
  const at = (keyId: string | null): ChainHead => ({ keyId, mac: '' });

  it.each<[string, string | null, readonly LogChainEvent[]]>([
    ['begin it', null, [{ type: 'LogChainStarted', data: { key_id: 'new' } }]],
    [
      'take it to the key of this instance',
      'old',
      [{ type: 'LogChainKeyChanged', data: { key_id: { from: 'old', to: 'new' } } }],
    ],
    ['are none when it has this key', 'new', []],
  ])('%s', (_, keyId, events) => {
    expect(decideLogChain(at(keyId), { type: 'EnsureLogChain', keyId: 'new' })).toEqual({ ok: true, value: events });
  });

  it('are told from those of the stream', () => {
    const own = [started('first'), keyChanged('a', 'b'), event('A'), event('toString')];
    expect(own.map((one) => isOfLogChain(stored([one])))).toEqual([true, true, false, false]);
  });

  it.each<[LogChainEvent, string | null]>([
    [{ type: 'LogChainStarted', data: { key_id: 'new' } }, null],
    [{ type: 'LogChainKeyChanged', data: { key_id: { from: 'old', to: 'new' } } }, 'old'],
  ])('are in the audit with the key before and after: %j', (one, before) => {
    expect(auditOfLogChainEvent(one)).toMatchObject({
      verb: 'update',
      changes: [{ path: 'log_chain_key', before, after: 'new' }],
      notRevertibleBecause: expect.stringContaining('master key'),
    });
  });
});
