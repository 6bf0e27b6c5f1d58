/** The least that a durable append costs: what comes in one turn of the event loop is one synchronous transaction. */
import { open } from 'lmdb';

export interface BareLog {
  /** Resolves with its revision once it is on the disk. */
  append(text: string): Promise<number>;
}

export function openBareLog(path: string): BareLog {
  // Flushed inside the commit, as the service's log is.
  const log = open<string, number>({ path, encoding: 'string', keyEncoding: 'uint32', overlappingSync: false });
  let head = 0;
  let turn: { readonly text: string; readonly resolve: (revision: number) => void }[] = [];

  const commit = (): void => {
    const members = turn;
    turn = [];
    log.transactionSync(() => {
      members.forEach(({ text }, index) => log.putSync(head + index, text));
    });
    for (const { resolve } of members) resolve((head += 1));
  };

  return {
    append: (text) =>
      new Promise((resolve) => {
        if (turn.length === 0) setImmediate(commit);
        turn.push({ text, resolve });
      }),
  };
}
