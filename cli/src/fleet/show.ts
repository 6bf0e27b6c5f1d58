/** Plans and drift as a person reads them: what goes in red with a minus, what comes in green with a plus. */
import { line, paint, shown, unreachable } from '../output.js';
import type { Schemas } from '../service.js';

export type Plan = Schemas['FleetPlan'];
type Step = Plan['steps'][number];

export async function showPlan({ steps, nodes, obstacles }: Plan): Promise<void> {
  for (const step of steps) await showStep(step);
  for (const { node_name, added, changed, removed } of nodes) {
    const counts = [`+${added.length}`, `~${changed.length}`, `-${removed.length}`].join(' ');
    await line(`configuration of ${shown(node_name)}: ${counts} rules`);
  }
  for (const sentence of obstacles) await line(paint('red', `in the way: ${shown(sentence)}`));
  if (steps.length === 0 && obstacles.length === 0) await line('no changes');
}

async function showStep({ action, resource: { type, name }, changes }: Step): Promise<void> {
  const what = `${action} ${type} ${shown(name)}`;
  switch (action) {
    case 'create':
      await line(paint('green', `+ ${what}`));
      break;
    case 'delete':
      await line(paint('red', `- ${what}`));
      break;
    case 'update':
    case 'rename':
    case 'deploy':
    case 'adopt':
      await line(paint('yellow', `~ ${what}`));
      break;
    default:
      return unreachable(action);
  }
  for (const change of changes) await showChange(change);
}

async function showChange({ path, before, after }: Step['changes'][number]): Promise<void> {
  if (before !== null) await line(paint('red', `    - ${shown(path)}: ${shown(before)}`));
  if (after !== null) await line(paint('green', `    + ${shown(path)}: ${shown(after)}`));
}

export async function showDrift(items: Schemas['FleetDrift']['items']): Promise<void> {
  for (const { resource, changes } of items) {
    await line(paint('yellow', `~ ${resource.type} ${shown(resource.name)}`));
    for (const { path, applied, now, entry_id } of changes) {
      await showChange({ path, before: applied, after: now });
      await line(paint('dim', `      by entry ${entry_id}`));
    }
  }
}

/** `3 to create, 1 to delete`. */
export function summary(steps: readonly Step[]): string {
  const counts = new Map<string, number>();
  for (const { action } of steps) counts.set(action, (counts.get(action) ?? 0) + 1);
  return [...counts].map(([action, count]) => `${count} to ${action}`).join(', ');
}
