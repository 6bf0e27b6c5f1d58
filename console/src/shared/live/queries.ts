/**
 * The cache of what the API answered, kept fresh by the feed. The key of a query begins with the type of resource that it is
 * about, in the API's words; `meta.follows` names further types whose changes it shows, or `all`.
 */
import { QueryClient } from '@tanstack/react-query';
import type { Refusal } from '../api/client.js';
import type { FeedItem } from './stream.js';
import { onFeed } from './live.js';

declare module '@tanstack/react-query' {
  interface Register {
    queryMeta: { readonly follows?: 'all' | readonly string[] };
    defaultError: Refusal;
  }
}

/** Events within this time cause one read. In a fleet where reading takes long, reads pause for as long as they took. */
const gatherMs = 150;
/**
 * How often everything on screen is read again: the feed has no reports without a change of status, such as traffic.
 */
const healMs = 60_000;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // The feed says when to read again.
      staleTime: 30_000,
      networkMode: 'always',
      refetchOnReconnect: false,
      retry: (failures, { status }) => (status === 0 || status >= 500) && failures < 2,
      retryDelay: 500,
    },
  },
});

/**
 * Types of resources that an item is about. A status also changes the health of whatever depends on it, and a fleet file
 * whatever it holds, whose types the item does not name.
 */
function typesOf({ type, data }: FeedItem): readonly string[] {
  if (type === 'status' || data.resource?.type === 'fleet') return ['all'];
  // An agent's session or apply changes its node, and listeners of whatever runs on it.
  if (type === 'session' || type === 'apply') return ['node', 'agent'];
  // A step releases nodes without touching them.
  if (type === 'rollout') return ['rollout', 'node', 'agent'];
  return data.resource === undefined ? [] : [data.resource.type, ...(type === 'command' ? ['audit'] : [])];
}

/** Reads again whatever is shown and, according to the feed, has changed. */
export function followFeed(): void {
  let pending = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** A read that each event restarts would never end. */
  let reading = false;
  let notBefore = 0;

  async function refresh(): Promise<void> {
    timer = undefined;
    reading = true;
    const types = pending;
    pending = new Set();
    const began = Date.now();
    await queryClient.invalidateQueries({
      predicate: ({ queryKey: [type], meta }) =>
        types.has('all') ||
        types.has(String(type)) ||
        meta?.follows === 'all' ||
        (meta?.follows ?? []).some((one) => types.has(one)),
    });
    notBefore = Date.now() + (Date.now() - began);
    reading = false;
    if (pending.size > 0) schedule();
  }
  function schedule(): void {
    if (reading) return;
    timer ??= setTimeout(() => void refresh(), Math.max(gatherMs, notBefore - Date.now()));
  }
  /** Includes reads under way, which the service may never answer. */
  function readAll(): void {
    reading = false;
    pending.add('all');
    schedule();
  }

  onFeed((items) => {
    if (items === 'everything') return readAll();
    for (const type of items.flatMap(typesOf)) pending.add(type);
    schedule();
  });
  setInterval(() => {
    if (!document.hidden) readAll();
  }, healMs);
}
