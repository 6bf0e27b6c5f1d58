/**
 * Items of the event feed as notices, the messages that people get: items of one kind are one notice, in the order of the
 * first of each kind. Pure; `formats.ts` writes a notice down for a chat. Implements
 * `docs/contract/notices.md#webhooks-for-people`, `group_secs`.
 */
import type { FeedContent, FeedItem } from '../feed/port.js';
import { fromJson } from '../kernel/json.js';
import { forEach } from '../kernel/pieces.js';
import { sortKey } from '../domain/resource/meta.js';
import { firstOf } from '../kernel/compare-text.js';
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
    /** Many resources of one status: the sentence up to their names, and the first names, at most `namesShown` of `total`. */
    | { readonly kind: 'names'; readonly head: string; readonly names: readonly string[]; readonly total: number }
  );

/** How many names a notice shows at most. */
const namesShown = 20;
/** No message has room for more. */
const linesMost = 200;

/** Items that are read in one piece. */
const itemsAtOnce = 250;

/** Items of one kind. */
interface Same {
  readonly first: FeedItem;
  readonly contents: FeedContent[];
  /** For a status, the names of its resources: one that has changed twice is named once. */
  readonly names: Set<string>;
}

/**
 * In pieces, because a window may hold ten thousand items.
 * @param items of one window, in their order
 * @param console the address of the console, without a slash at its end; null for no links
 */
export function* noticesOf(items: readonly FeedItem[], console: string | null): Generator<void, readonly ItemNotice[]> {
  const kinds = new Map<string, Same>();
  yield* forEach(items, itemsAtOnce, (item) => {
    const { type, json } = item;
    const content = { type, data: fromJson(JSON.parse(json)) } as FeedContent;
    const kind = content.type === 'status' ? `${content.data.status} ${content.data.resource.type}` : content.type;
    const same = kinds.get(kind) ?? { first: item, contents: [], names: new Set() };
    kinds.set(kind, same);
    same.contents.push(content);
    if (content.type === 'status') same.names.add(content.data.resource.name);
  });
  return Array.from(kinds.values(), (same) => ({ ...noticeOf(same, console), first: same.first }));
}

function noticeOf({ contents, names }: Same, console: string | null): Notice {
  const [first] = contents;
  if (first === undefined) throw new Error('a notice is of one item at least');
  const tone = contents.map(toneOf).find((one) => one === 'bad') ?? toneOf(first);
  const link = console === null ? null : console + (contents.length === 1 ? pathOf(first) : listPathOf(first));
  if (first.type !== 'status' || contents.length === 1) {
    const lines = contents.slice(0, linesMost).map(sentenceOf);
    return { kind: 'lines', tone, link, lines, total: contents.length };
  }
  const head = severalAre(first.data.resource.type, first.data.status, names.size);
  const shown = firstOf(names, namesShown, sortKey).map((name) => nameOf(name).name);
  return { kind: 'names', tone, link, head, names: shown, total: names.size };
}

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
