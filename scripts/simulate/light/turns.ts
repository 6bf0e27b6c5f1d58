/** Limits how many agents of one process connect at the same time. */

export const connectingAtOnce = 128;

/** Calls back when it is the caller's turn; the callback calls `done` when it has connected or failed. */
export type Turns = (connect: (done: () => void) => void) => void;

/** Lets `atOnce` callers connect at the same time, first come, first served. */
export function createTurns(atOnce: number): Turns {
  const waiting: ((done: () => void) => void)[] = [];
  let next = 0;
  let busy = 0;
  const admit = (): void => {
    while (busy < atOnce && next < waiting.length) {
      const connect = waiting[next];
      next += 1;
      if (next === waiting.length) waiting.length = next = 0;
      if (connect === undefined) continue;
      busy += 1;
      let released = false;
      connect(() => {
        if (released) return;
        released = true;
        busy -= 1;
        setImmediate(admit);
      });
    }
  };
  return (connect) => {
    waiting.push(connect);
    setImmediate(admit);
  };
}
