/**
 * One connection to the event feed that never gives up: it resumes at its cursor, says when it is out of reach, and asks
 * again. It runs in the worker that all tabs share (`feed-worker.ts`), or in the page where browsers have none.
 * Implements the client's side of `docs/contract/automation.md#event-feed`.
 */
import { createParser } from 'eventsource-parser';

/** An item of the feed, which may name a resource. */
export interface FeedItem {
  readonly type: string;
  readonly data: {
    readonly resource?: { readonly type: string; readonly id: string | null };
  };
}

export type StreamState =
  | { readonly kind: 'connecting' | 'live' | 'crowded' | 'signed_out' }
  | { readonly kind: 'unreachable'; readonly since: number };

export type StreamMessage =
  | { readonly kind: 'items'; readonly items: readonly FeedItem[] }
  /** Something may have been missed: all that is shown must be read again. */
  | { readonly kind: 'gap' }
  | { readonly kind: 'state'; readonly state: StreamState };

export interface FeedStream {
  /** Begins, or begins again after a sign-in. */
  start(): void;
  /** The last state that was announced. */
  state(): StreamState;
}

/** The service sends something every 15 s. */
const silentMs = 35_000;
const retryMs = { first: 1_000, most: 5_000 };

/** @param tell called with whatever happens; it may be called after a page is gone */
export function openFeedStream(tell: (message: StreamMessage) => void): FeedStream {
  let cursor: string | undefined;
  let state: StreamState = { kind: 'connecting' };
  let running = false;

  const become = (next: StreamState): void => {
    if (next.kind === state.kind) return;
    state = next;
    tell({ kind: 'state', state });
  };

  /** Reads until the connection ends. @returns how to go on */
  async function read(): Promise<'again' | 'crowded' | 'signed_out' | 'restart' | 'failed'> {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), silentMs);
    try {
      const query = cursor === undefined ? '' : `?after=${encodeURIComponent(cursor)}`;
      const headers = { accept: 'text/event-stream' };
      const response = await fetch(`/api/events${query}`, { headers, signal: silence.signal });
      if (response.status === 401) return 'signed_out';
      // Another log, or a restored one: the cursor is of no use.
      if (response.status === 409 || response.status === 400) return 'restart';
      if (response.status === 429) return 'crowded';
      if (!response.ok || response.body === null) return 'failed';
      let gathered: FeedItem[] = [];
      const parser = createParser({
        onEvent({ id, event = '', data }) {
          if (id !== undefined) cursor = id;
          // A resumed stream does not repeat derived items, which have no cursor.
          if (event === 'ready' && state.kind === 'live') tell({ kind: 'gap' });
          else if (event === 'ready') become({ kind: 'live' });
          else if (event !== 'end') gathered.push({ type: event, data: JSON.parse(data) as FeedItem['data'] });
        },
      });
      const texts = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await texts.read();
        if (done) return 'again';
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), silentMs);
        parser.feed(value);
        if (gathered.length > 0) tell({ kind: 'items', items: gathered });
        gathered = [];
      }
    } catch {
      return 'failed';
    } finally {
      clearTimeout(timer);
      silence.abort();
    }
  }

  async function run(): Promise<void> {
    let waitMs = retryMs.first;
    for (;;) {
      const ended = await read();
      if (ended === 'signed_out') return become({ kind: 'signed_out' });
      if (ended === 'restart') {
        cursor = undefined;
        tell({ kind: 'gap' });
      }
      if (state.kind === 'live') waitMs = retryMs.first;
      if (ended === 'crowded') become({ kind: 'crowded' });
      if (ended === 'failed') become({ kind: 'unreachable', since: Date.now() });
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      waitMs = Math.min(waitMs * 1.5, retryMs.most);
    }
  }

  return {
    start() {
      if (running) return;
      running = true;
      become({ kind: 'connecting' });
      void run().finally(() => (running = false));
    },
    state: () => state,
  };
}
