/** Runs calls with the same key one after the other, each whatever became of the one before. Other keys run freely. */
export function oneAtATime<K>(): <T>(key: K, work: () => Promise<T>) => Promise<T> {
  const newest = new Map<K, Promise<unknown>>();
  return async (key, work) => {
    const before = newest.get(key) ?? Promise.resolve();
    const running = before.catch(() => undefined).then(work);
    newest.set(key, running);
    try {
      return await running;
    } finally {
      if (newest.get(key) === running) newest.delete(key);
    }
  };
}
