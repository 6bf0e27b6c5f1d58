/** How many there are by state, each a filter of the list below. */
import { UnstyledButton } from '@mantine/core';
import type { ReactNode } from 'react';
import classes from './count-chips.module.css';
import { formatCount, none } from './format.js';
import { Sign, type Mood } from './state.js';

export interface CountChip {
  readonly word: string;
  readonly mood?: Mood;
  /** Undefined while it is not known. */
  readonly count: number | undefined;
  readonly chosen: boolean;
  readonly onChoose: () => void;
}

export function CountChips({
  label,
  chips,
}: {
  readonly label: string;
  readonly chips: readonly CountChip[];
}): ReactNode {
  return (
    <div className={classes.chips} role="group" aria-label={label}>
      {chips.map(({ word, mood, count, chosen, onChoose }) => (
        <UnstyledButton key={word} className={classes.chip} aria-pressed={chosen} onClick={onChoose}>
          {mood !== undefined && <Sign mood={mood} size={14} />}
          {word} <b>{count === undefined ? none : formatCount(count)}</b>
        </UnstyledButton>
      ))}
    </div>
  );
}
