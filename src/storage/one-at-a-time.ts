/**
 * Runs calls with the same key one after the other, even after a failure. Calls with other keys run at the same time.
 */
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
