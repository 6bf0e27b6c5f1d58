/** Who is called back when something happens. One that fails is told of and does not keep the others from hearing. */
export interface Listeners<T> {
  /** Returns how to stop listening. */
  add(listener: (value: T) => void): () => void;
  tell(value: T): void;
}

/** @param onError gets what a listener throws */
export function createListeners<T>(onError: (error: unknown) => void): Listeners<T> {
  const listeners = new Set<(value: T) => void>();
  return {
    add(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    tell(value) {
      for (const listener of listeners) {
        try {
          listener(value);
        } catch (error) {
          onError(error);
        }
      }
    },
  };
}
