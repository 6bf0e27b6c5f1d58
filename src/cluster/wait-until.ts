/** Asks again and again whether the other instances have come to something. */
import { sleep } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { tuning } from './tuning.js';

/** @param until on the monotonic clock, in milliseconds. @returns false if the condition does not hold by then */
export async function waitUntil(
  clock: Pick<Clock, 'monotonic'>,
  until: number,
  condition: () => boolean | Promise<boolean>,
): Promise<boolean> {
  while (!(await condition())) {
    if (clock.monotonic() >= until) return false;
    await sleep(tuning.pollMs);
  }
  return true;
}
