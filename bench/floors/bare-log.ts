/** The floor of a durable append: all appends of one turn of the event loop go into one synchronous transaction. */
import { open } from 'lmdb';

export interface BareLog {
  /** Resolves with the revision once it is on disk. */
  append(text: string): Promise<number>;
}

export function openBareLog(path: string): BareLog {
  // Flushed within the commit, like the service's log.
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
