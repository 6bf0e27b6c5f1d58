/** Whether work lets other work have its turn. */

/** @returns what the work answers, and how often the event loop turned meanwhile */
export async function turnsDuring<T>(work: Promise<T>): Promise<readonly [answer: T, turns: number]> {
  let turns = 0;
  const turn = (): void => {
    turns += 1;
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  try {
    return [await work, turns];
  } finally {
    clearImmediate(next);
  }
}
