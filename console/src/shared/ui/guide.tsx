/**
 * A guided list of steps: those that are done are ticked, and the first open one is marked. The caller says what a step
 * shows.
 */
import { Stack, Text, VisuallyHidden } from '@mantine/core';
import type { ReactNode } from 'react';
import classes from './guide.module.css';
import { Sign } from './state.js';
import { text } from './ui.text.js';

export interface GuideStep {
  readonly title: string;
  readonly done: boolean;
  /** What it is for, and what there is to do. */
  readonly meaning: ReactNode;
  readonly children?: ReactNode;
}

export function Guide({ steps }: { readonly steps: readonly GuideStep[] }): ReactNode {
  const next = steps.findIndex(({ done }) => !done);
  return (
    <ol className={classes.steps}>
      {steps.map(({ title, done, meaning, children }, index) => (
        <li
          key={title}
          className={classes.step}
          data-next={index === next || undefined}
          aria-current={index === next ? 'step' : undefined}
        >
          <Stack gap="xs">
            <div className={classes.title}>
              <Sign mood={done ? 'good' : index === next ? 'busy' : 'idle'} />
              <strong>
                {index + 1}. {title}
                {done && <VisuallyHidden>, {text.stepDone}</VisuallyHidden>}
              </strong>
            </div>
            <Text size="sm" c="dimmed" component="div">
              {meaning}
            </Text>
            {children}
          </Stack>
        </li>
      ))}
    </ol>
  );
}
