/**
 * Items of the event feed as notices, the messages that people get: items of one kind are one notice, in the order of the
 * first of each kind. Pure; `formats.ts` writes a notice down for a chat. Implements
 * `docs/contract/notices.md#webhooks-for-people`, `group_secs`.
 */
import type { FeedContent, FeedItem } from '../feed/port.js';
import { fromJson } from '../kernel/json.js';
import { sortKey } from '../domain/resource/meta.js';
import { compareText } from '../kernel/compare-text.js';
import { nameOf, type Line } from './line.js';
import { sentenceOf, severalAre, toneOf, type Tone } from './sentences.js';

/** A notice of items of the feed, with the first of them. */
export type ItemNotice = Notice & { readonly first: FeedItem };

export type Notice = {
  readonly tone: Tone;
  /** Where the console shows it; null without a console to link to. */
  readonly link: string | null;
} &
  /** The first lines, as many as any message has room for, of `total`. */
  (
    | { readonly kind: 'lines'; readonly lines: readonly Line[]; readonly total: number }
    /** Many resources of one status: the sentence up to their names. */
    | { readonly kind: 'names'; readonly head: string; readonly names: readonly string[] }
  );

/** How many names a notice shows at most. */
export const namesShown = 20;
/** No message has room for more. */
const linesMost = 200;

/**
 * @param items of one window, in their order
 * @param console the address of the console, without a slash at its end; null for no links
 */
export function noticesOf(items: readonly FeedItem[], console: string | null): readonly ItemNotice[] {
  const kinds = new Map<string, { readonly first: FeedItem; readonly contents: FeedContent[] }>();
  for (const item of items) {
    const { type, json } = item;
    const content = { type, data: fromJson(JSON.parse(json)) } as FeedContent;
    const kind = content.type === 'status' ? `${content.data.status} ${content.data.resource.type}` : content.type;
    const same = kinds.get(kind);
    if (same === undefined) kinds.set(kind, { first: item, contents: [content] });
    else same.contents.push(content);
  }
  return Array.from(kinds.values(), ({ first, contents }) => ({ ...noticeOf(contents, console), first }));
}

function noticeOf(same: readonly FeedContent[], console: string | null): Notice {
  const [first] = same;
  if (first === undefined) throw new Error('a notice is of one item at least');
  const tone = same.map(toneOf).find((one) => one === 'bad') ?? toneOf(first);
  const link = console === null ? null : console + (same.length === 1 ? pathOf(first) : listPathOf(first));
  if (first.type !== 'status' || same.length === 1) {
    return { kind: 'lines', tone, link, lines: same.slice(0, linesMost).map(sentenceOf), total: same.length };
  }
  const { type } = first.data.resource;
  // One that has changed twice in the window is named once.
  const names = [...new Set(same.flatMap((one) => (one.type === 'status' ? [one.data.resource.name] : [])))];
  const head = severalAre(type, first.data.status, names.length);
  return { kind: 'names', tone, link, head, names: byNatural(names).map((name) => nameOf(name).name) };
}

const byNatural = (names: readonly string[]): readonly string[] =>
  names
    .map((name) => ({ name, key: sortKey(name) }))
    .sort((a, b) => compareText(a.key, b.key))
    .map(({ name }) => name);

/** A ping. @param name of the webhook */
export const pingNotice = (name: string): Notice => ({
  kind: 'lines',
  tone: 'neutral',
  link: null,
  lines: [['This is a test message of the webhook ', nameOf(name), '.']],
  total: 1,
});

const pages: { readonly [type: string]: string } = {
  node: '/nodes',
  l4_chain: '/chains',
  l4_upstream: '/upstreams',
  credential: '/credentials',
};

function pathOf(content: FeedContent): string {
  switch (content.type) {
    case 'status':
      return `${pages[content.data.resource.type] ?? ''}/${content.data.resource.id}`;
    case 'session':
    case 'apply':
      return `/nodes/${content.data.node_id}`;
    case 'rollout':
      return content.data.entry_id === null ? '/audit' : `/audit?entry=${content.data.entry_id}`;
    default:
      return `/audit?entry=${content.data.id}`;
  }
}

function listPathOf(content: FeedContent): string {
  switch (content.type) {
    case 'status':
      return pages[content.data.resource.type] ?? '/';
    case 'session':
    case 'apply':
      return '/nodes';
    default:
      return '/audit';
  }
}
