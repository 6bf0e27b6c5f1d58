/** A state by colour and sign, so that nobody has to tell colours apart. */
import type { ReactNode } from 'react';
import classes from './state.module.css';

export type Mood = 'good' | 'bad' | 'warning' | 'busy' | 'idle';

const signs: Readonly<Record<Mood, string>> = {
  good: 'M3.5 8.5l3 3 6-7',
  bad: 'M4 4l8 8M12 4l-8 8',
  warning: 'M8 3v6.5M8 12.4v.2',
  busy: 'M8 3.5V8l3 2',
  idle: 'M4 8h8',
};

interface StateProps {
  readonly mood: Mood;
  /** Why, shown on hover. */
  readonly why?: string | undefined;
  readonly children: ReactNode;
}

export function State({ mood, why, children }: StateProps): ReactNode {
  return (
    <span className={classes.state} data-mood={mood} title={why}>
      <Sign mood={mood} />
      {children}
    </span>
  );
}

/** The sign alone, for places whose words say the state already. */
export function Sign({ mood, size = 16 }: { readonly mood: Mood; readonly size?: number }): ReactNode {
  return (
    <svg className={classes.sign} data-mood={mood} width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
      <circle cx="8" cy="8" r="8" />
      <path d={signs[mood]} />
    </svg>
  );
}
