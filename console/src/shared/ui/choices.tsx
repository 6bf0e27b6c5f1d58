/** Filters of a few words each, as fields that the address keeps. */
import { Select } from '@mantine/core';
import type { ReactNode } from 'react';

export interface Choice<S> {
  /** In the address. */
  readonly name: keyof S & string;
  readonly label: string;
  /** Shown where nothing is chosen. */
  readonly any: string;
  /** The words that can be chosen, each with what is shown for it. */
  readonly words: Readonly<Record<string, string>>;
  readonly width?: number;
}

interface ChoicesProps<S> {
  readonly choices: readonly Choice<S>[];
  readonly search: S;
  readonly onFilter: (changed: Partial<S>) => void;
}

export function Choices<S>({ choices, search, onFilter }: ChoicesProps<S>): ReactNode {
  return choices.map(({ name, label, any, words, width = 170 }) => (
    <Select
      key={name}
      aria-label={label}
      placeholder={any}
      data={Object.entries(words).map(([value, shown]) => ({ value, label: shown }))}
      value={(search[name] as string | undefined) ?? null}
      onChange={(chosen) => onFilter({ [name]: chosen ?? undefined } as Partial<S>)}
      clearable
      w={width}
    />
  ));
}
