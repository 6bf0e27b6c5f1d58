/** The findings of one scenario: which sentences the agent kept, and which it broke, with what was observed. Pure. */
import type { SentenceName } from './sentences.js';

export interface Broken {
  readonly sentence: SentenceName;
  /** What the agent did instead, the first time. */
  readonly observed: string;
  /** How often. */
  times: number;
}

export interface Verdicts {
  /**
   * Notes whether the agent kept a sentence.
   * @param observed what it did, for the report if it broke it
   * @returns `kept`
   */
  check(sentence: SentenceName, kept: boolean, observed: string): boolean;
  /** Checked, and not broken. */
  kept(): readonly SentenceName[];
  broken(): readonly Broken[];
  /** Resolves when a sentence is found broken. */
  whenBroken(sentence: SentenceName): Promise<void>;
}

export function createVerdicts(): Verdicts {
  const checked = new Set<SentenceName>();
  const broken = new Map<SentenceName, Broken>();
  const waiting = new Map<SentenceName, () => void>();
  return {
    check(sentence, kept, observed) {
      checked.add(sentence);
      const known = broken.get(sentence);
      if (!kept && known === undefined) broken.set(sentence, { sentence, observed, times: 1 });
      if (!kept && known !== undefined) known.times += 1;
      if (!kept) waiting.get(sentence)?.();
      return kept;
    },
    kept: () => [...checked].filter((name) => !broken.has(name)),
    broken: () => [...broken.values()],
    whenBroken: (sentence) =>
      new Promise((resolve) => {
        waiting.set(sentence, resolve);
        if (broken.has(sentence)) resolve();
      }),
  };
}
