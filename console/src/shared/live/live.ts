/**
 * What the page knows of the feed: whether it is live, and what happened. All tabs of a browser share one stream through a
 * worker, which needs no TLS; a browser without shared workers has a stream for each tab.
 */
import { useSyncExternalStore } from 'react';
import { openFeedStream, type FeedItem, type StreamMessage, type StreamState } from './stream.js';

type Listener = (items: readonly FeedItem[] | 'everything') => void;

const listeners = new Set<Listener>();
const watchers = new Set<() => void>();
let state: StreamState = { kind: 'connecting' };

function receive(message: StreamMessage): void {
  switch (message.kind) {
    case 'state': {
      const wasLive = state.kind === 'live';
      state = message.state;
      for (const changed of watchers) changed();
      // A new stream begins at its own `now`, which is later than what the page has read.
      if (!wasLive && state.kind === 'live') for (const listener of listeners) listener('everything');
      return;
    }
    case 'gap':
      for (const listener of listeners) listener('everything');
      return;
    case 'items':
      for (const listener of listeners) listener(message.items);
      return;
    default:
      return message satisfies never;
  }
}

let begin: (() => void) | undefined;

/** Connects the page to the feed, once somebody is signed in; again after another sign-in. */
export function startLive(): void {
  begin ??= connect();
  begin();
}

function connect(): () => void {
  if (typeof SharedWorker === 'undefined') {
    const stream = openFeedStream(receive);
    return () => stream.start();
  }
  const worker = new SharedWorker(new URL('./feed-worker.ts', import.meta.url), { type: 'module', name: 'feed' });
  worker.port.addEventListener('message', ({ data }: MessageEvent<StreamMessage>) => receive(data));
  worker.port.start();
  addEventListener('pagehide', () => worker.port.postMessage('bye'));
  // A page that comes back from the browser's cache has said goodbye, and missed what happened since.
  addEventListener('pageshow', ({ persisted }) => {
    if (!persisted) return;
    worker.port.postMessage('start');
    receive({ kind: 'gap' });
  });
  return () => worker.port.postMessage('start');
}

/** Calls back with the items of the feed, or `everything` after a gap. @returns ends it */
export function onFeed(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Whether what is shown is live. */
export function useLive(): StreamState {
  return useSyncExternalStore(
    (changed) => {
      watchers.add(changed);
      return () => watchers.delete(changed);
    },
    () => state,
  );
}
