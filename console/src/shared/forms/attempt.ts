/** Something that the service may refuse: whether it is under way, and the refusal until the next try. */
import { useState } from 'react';
import { Refusal } from '../api/client.js';

interface Attempt {
  readonly working: boolean;
  readonly refused: Refusal | undefined;
  /** Does it. Rethrows anything but a refusal. */
  attempt(action: () => Promise<void>): Promise<void>;
  /** Hides the refusal. */
  forget(): void;
}

export function useAttempt(): Attempt {
  const [working, setWorking] = useState(false);
  const [refused, setRefused] = useState<Refusal>();
  const forget = (): void => setRefused(undefined);
  return {
    working,
    refused,
    async attempt(action) {
      setWorking(true);
      forget();
      try {
        await action();
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        setRefused(error);
      } finally {
        setWorking(false);
      }
    },
    forget,
  };
}
