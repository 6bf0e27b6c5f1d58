/** Callbacks for an event. One that throws does not keep the others from being called. */
export interface Listeners<T> {
  /** @returns a function that removes the listener */
  add(listener: (value: T) => void): () => void;
  tell(value: T): void;
}

/** @param onError receives the error of a listener */
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
