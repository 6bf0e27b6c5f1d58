/** Something that the service may refuse: whether it is under way, and the refusal until the next try. */
import { useRef, useState } from 'react';
import { Refusal } from '../api/client.js';

interface Attempt {
  readonly working: boolean;
  readonly refused: Refusal | undefined;
  /** Does it. Rethrows anything but a refusal. */
  attempt(action: () => Promise<void>): Promise<void>;
  /** Hides the refusal, also one that is still to come. */
  forget(): void;
}

export function useAttempt(): Attempt {
  const [working, setWorking] = useState(false);
  const [refused, setRefused] = useState<Refusal>();
  const latest = useRef<() => Promise<void>>(undefined);
  const forget = (): void => {
    latest.current = undefined;
    setRefused(undefined);
  };
  return {
    working,
    refused,
    async attempt(action) {
      setWorking(true);
      forget();
      latest.current = action;
      try {
        await action();
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        if (latest.current === action) setRefused(error);
      } finally {
        setWorking(false);
      }
    },
    forget,
  };
}
