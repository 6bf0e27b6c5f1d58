/** The steps that people take with a rollout: each says first what it will do, in current figures. */
import { Button, Menu } from '@mantine/core';
import type { ReactNode } from 'react';
import { Confirm } from '../shared/forms/confirm.js';
import { queryClient } from '../shared/live/queries.js';
import { useMay } from '../shared/session.js';
import { useDialog } from '../shared/ui/dialog.js';
import { sayDone } from '../shared/ui/done.js';
import { More } from '../shared/ui/more.js';
import { takeStep, type Rollout } from './rollouts.js';
import { text } from './rollouts.text.js';
import { nodesIn, possibleSteps, type Step } from './steps.js';

export function StepButtons({ rollout }: { readonly rollout: Rollout }): ReactNode {
  const mayStep = useMay('operator');
  const [main, ...others] = mayStep ? possibleSteps(rollout) : [];
  if (main === undefined) return null;
  return (
    <>
      <MainStep step={main} />
      {others.length > 0 && (
        <More>
          {others.map((step) => (
            <OtherStep key={step} step={step} />
          ))}
        </More>
      )}
      {[main, ...others].map((step) => (
        <Question key={step} step={step} rollout={rollout} />
      ))}
    </>
  );
}

function MainStep({ step }: { readonly step: Step }): ReactNode {
  const { open } = useDialog(step);
  return (
    <Button size="xs" onClick={open}>
      {text.steps[step]}
    </Button>
  );
}

function OtherStep({ step }: { readonly step: Step }): ReactNode {
  const { open } = useDialog(step);
  return <Menu.Item onClick={open}>{text.steps[step]}</Menu.Item>;
}

function Question({ step, rollout }: { readonly step: Step; readonly rollout: Rollout }): ReactNode {
  const { opened, close } = useDialog(step);
  const take = async (): Promise<void> => {
    try {
      await takeStep(rollout.id, step);
      sayDone(text.done[step]);
    } finally {
      await queryClient.invalidateQueries({ queryKey: ['rollout'] });
    }
  };
  return (
    <Confirm
      opened={opened}
      title={text.stepTitles[step]}
      action={text.steps[step]}
      mild={step !== 'revert' && step !== 'complete'}
      onConfirm={take}
      onClose={close}
    >
      {meaningOf(step, rollout)}
    </Confirm>
  );
}

function meaningOf(step: Step, { state, wave, waves }: Rollout): string {
  const all = waves.reduce((sum, { counts }) => sum + nodesIn(counts), 0);
  // A waiting wave may contain nodes that had the change from the start, such as new ones.
  const held = waves.reduce((sum, { counts }) => sum + counts.held, 0);
  switch (step) {
    case 'pause':
      return text.pauseMeaning(held);
    case 'resume':
      return state === 'halted' ? text.resumeHalted : text.resumePaused;
    case 'advance': {
      const next = waves[wave];
      return next === undefined ? text.advanceLast : text.advanceMeaning(nodesIn(next.counts));
    }
    case 'complete':
      return text.completeMeaning(held);
    case 'revert':
      return text.revertMeaning(all - held, held);
    default:
      return step satisfies never;
  }
}
