/** The states of a chain and of its deployments. */
import type { ReactNode } from 'react';
import { StateOf } from '../shared/ui/state-of.js';
import type { Chain, DeploymentNode } from './chains.js';

export function StatusState({ status }: Pick<Chain, 'status'>): ReactNode {
  return <StateOf kind="chain" is={status} />;
}

export function HealthState({ health }: Pick<Chain, 'health'>): ReactNode {
  return <StateOf kind="health" is={health.state} why={health.reasons.join(' ') || undefined} />;
}

export function NodeProgress({ state }: Pick<DeploymentNode, 'state'>): ReactNode {
  return <StateOf kind="deployment" is={state} />;
}
