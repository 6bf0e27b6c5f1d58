/** Runs calls with the same key in order, even after a failure, and calls with other keys concurrently. */
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
