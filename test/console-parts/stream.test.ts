/** What the stream of the feed says of itself (`docs/contract/console.md#rules`). */
import { afterEach, expect, test, vi } from 'vitest';
import { openFeedStream } from '../../console/src/shared/live/stream.js';

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('a stream for which there is no place is not told as a service out of reach', async () => {
  vi.useFakeTimers();
  const answers = [429, 503, 401];
  vi.stubGlobal('fetch', async () => new Response('', { status: answers.shift() ?? 401 }));
  const told: string[] = [];
  const stream = openFeedStream((message) => told.push(message.kind === 'state' ? message.state.kind : message.kind));
  stream.start();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(told).toEqual(['crowded', 'unreachable', 'signed_out']);
});

test('a stream that was resumed may have missed what has no cursor, and says so', async () => {
  vi.useFakeTimers();
  const ready = () => new Response('event: ready\nid: 1\ndata: {"at":""}\n\n');
  const answers = [ready(), ready(), new Response('', { status: 401 })];
  vi.stubGlobal('fetch', async () => answers.shift());
  const told: string[] = [];
  openFeedStream((message) => told.push(message.kind === 'state' ? message.state.kind : message.kind)).start();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(told).toEqual(['live', 'gap', 'signed_out']);
});
