/**
 * Loaded into the service with `--import`: measures its longest turn of the event loop between `/begin` and `/end`, asked for on the socket
 * `TURN_METER`. While it measures, the loop does not sleep, so nothing but the service may be measured with it.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { isMainThread } from 'node:worker_threads';

/** Milliseconds; those of the processor count only the main thread. */
export interface LongestTurn {
  readonly wall: number;
  readonly processor: number;
}

/** Processor time of the main thread, in milliseconds; Linux. */
const processorMs = (): number =>
  Number.parseInt(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1'), 10) / 1e6;

let measuring = false;
let longest = { wall: 0, processor: 0 };
let began = { wall: 0, processor: 0 };

function nextTurn(): void {
  const now = { wall: performance.now(), processor: processorMs() };
  longest = {
    wall: Math.max(longest.wall, now.wall - began.wall),
    processor: Math.max(longest.processor, now.processor - began.processor),
  };
  began = now;
  if (measuring) setImmediate(nextTurn);
}

if (isMainThread && process.env['TURN_METER'] !== undefined) {
  createServer((request, response) => {
    measuring = request.url === '/begin';
    if (measuring) {
      began = { wall: performance.now(), processor: processorMs() };
      longest = { wall: 0, processor: 0 };
      setImmediate(nextTurn);
    }
    response.end(JSON.stringify(longest));
  })
    .listen(process.env['TURN_METER'])
    .unref();
}
