/** Prints plans and drift: removals in red with a minus, additions in green with a plus. */
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

/** `2,001 to create, 1,000 to deploy, in 7 commands; 998 nodes get a new configuration`. */
export function summary(plans: readonly Plan[]): string {
  const counts = new Map<string, number>();
  for (const { action } of plans.flatMap(({ steps }) => steps)) counts.set(action, (counts.get(action) ?? 0) + 1);
  if (counts.size === 0) return 'no changes';
  const steps = [...counts].map(([action, count]) => `${grouped(count)} to ${action}`).join(', ');
  const commands = plans.reduce((sum, plan) => sum + plan.commands, 0);
  const nodes = new Set(plans.flatMap((plan) => plan.nodes.map(({ node_name: name }) => name))).size;
  return `${steps}, in ${counted(commands, 'command')}; ${counted(nodes, 'node')} ${nodes === 1 ? 'gets' : 'get'} a new configuration`;
}

const grouped = (count: number): string => count.toLocaleString('en-US');

/** `1 command`, `2,001 commands` */
export const counted = (count: number, what: string): string => `${grouped(count)} ${what}${count === 1 ? '' : 's'}`;
