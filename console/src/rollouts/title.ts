/** The change that a rollout brings to its nodes, in words. Pure. */
import { typeNames } from '../shared/ui/resource-link.js';
import type { Rollout } from './rollouts.js';
import { text } from './rollouts.text.js';

/** `Deploy chain front`; the type's own verb where there is no word for it. */
export function titleOf({ action, resource, entry_id }: Pick<Rollout, 'action' | 'resource' | 'entry_id'>): string {
  if (entry_id === null) return text.upgrade;
  const [type = '', verb = ''] = action.split('.');
  const noun = (typeNames[type] ?? type).replace(/^([A-Z])(?=[a-z])/, (first) => first.toLowerCase());
  // The settings and the fleet file have no name of their own.
  const name = resource.name === null || type === 'connectivity' ? '' : ` ${resource.name}`;
  return `${text.verbs[verb] ?? verb} ${noun}${name}`;
}
