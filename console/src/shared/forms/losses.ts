/**
 * What leaving the page would lose: text that is typed and not saved, and secrets that are shown only once. Components
 * register it with `useLoss`; links, Back, a reload and the sign-out then ask, with the one question that
 * `leave-guard.tsx` shows.
 */
import { useEffect, useRef } from 'react';

export interface Loss {
  readonly kind: 'typed' | 'secret';
  /** Its name on its page. */
  readonly names: readonly string[];
}

export interface Question {
  readonly losses: readonly Loss[];
  answer(leave: boolean): void;
}

const held = new Set<() => Loss>();
const watchers = new Set<() => void>();
let question: Question | undefined;
let answered = Promise.resolve(true);

/** What would be lost now. */
export const losses = (): readonly Loss[] =>
  [...held].map((lossOf) => lossOf()).filter(({ names }) => names.length > 0);

/**
 * @param namesNow what would be lost if the page were left now; called when somebody is about to leave
 * @returns to be called once nothing of it can be lost any more
 */
export function useLoss(kind: Loss['kind'], namesNow: () => readonly string[]): () => void {
  const latest = useRef(namesNow);
  const settled = useRef(false);
  useEffect(() => {
    latest.current = namesNow;
  });
  useEffect(() => {
    const lossOf = (): Loss => ({ kind, names: settled.current ? [] : latest.current() });
    held.add(lossOf);
    return () => void held.delete(lossOf);
  }, [kind]);
  return () => void (settled.current = true);
}

/** Asks if something would be lost. @returns whether to leave */
export function mayLeave(): Promise<boolean> {
  if (question !== undefined) return answered;
  const lost = losses();
  if (lost.length === 0) return Promise.resolve(true);
  answered = new Promise((resolve) => {
    ask({
      losses: lost,
      answer(leave) {
        ask(undefined);
        resolve(leave);
      },
    });
  });
  return answered;
}

/** The page is left: nothing of it is asked for again. */
export const letGo = (): void => held.clear();

function ask(next: Question | undefined): void {
  question = next;
  for (const changed of watchers) changed();
}

/** The question that waits for an answer, as a store for React. */
export const questions = {
  subscribe(changed: () => void): () => void {
    watchers.add(changed);
    return () => watchers.delete(changed);
  },
  now: (): Question | undefined => question,
};
