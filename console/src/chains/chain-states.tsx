/** The states of a chain and of its deployments, each with its sign. */
import type { ReactNode } from 'react';
import { State, type Mood } from '../shared/ui/state.js';
import { When } from '../shared/ui/when.js';
import type { Chain, DeploymentNode } from './chains.js';
import { text } from './chains.text.js';

const statusMoods: Readonly<Record<Chain['status'], Mood>> = {
  draft: 'idle',
  deployed: 'good',
  modified: 'warning',
  disabled: 'idle',
};
const healthMoods: Readonly<Record<Chain['health']['state'], Mood>> = {
  ok: 'good',
  degraded: 'warning',
  down: 'bad',
  unknown: 'idle',
};
const deploymentMoods: Readonly<Record<DeploymentNode['state'], Mood>> = {
  pending: 'busy',
  pushed: 'busy',
  applied: 'good',
  rejected: 'bad',
  offline: 'warning',
  held: 'idle',
};

export function StatusState({ status }: Pick<Chain, 'status'>): ReactNode {
  return <State mood={statusMoods[status]}>{text.statuses[status]}</State>;
}

export function HealthState({ health }: Pick<Chain, 'health'>): ReactNode {
  return (
    <span title={health.reasons.join(' ') || undefined}>
      <State mood={healthMoods[health.state]}>{text.healths[health.state]}</State>
    </span>
  );
}

export function NodeProgress({ state }: Pick<DeploymentNode, 'state'>): ReactNode {
  return <State mood={deploymentMoods[state]}>{text.states[state]}</State>;
}

/** The listener of a hop, in the agent's words where it does not listen; grey where it is only last known. */
export function ListenerState({ deployed, state, stale, reported_at: at }: Chain['hop_status'][number]): ReactNode {
  if (!deployed) return <State mood="idle">{text.notDeployedHere}</State>;
  if (state === null) return <State mood="idle">{at === null ? text.noReport : text.notToldYet}</State>;
  const words = state === 'running' ? text.running : state;
  if (stale) {
    return (
      <State mood="idle">
        {words}, {text.lastKnown} <When at={at} />
      </State>
    );
  }
  return <State mood={state === 'running' ? 'good' : 'bad'}>{words}</State>;
}
