/**
 * Waits until the touched nodes have applied or rejected a configuration. Implements
 * `docs/contract/automation.md#the-command-line-svcctl`, `--wait`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { refused } from '../exit.js';
import { shown } from '../output.js';
import { pagesOf, typeOf } from '../resources.js';
import { isAway, patiently, type Api, type Schemas } from '../service.js';
import { counted, type Plan } from './show.js';

type Node = Schemas['Node'];

const askEveryMs = 1_000;

/**
 * Waits neither for offline nodes, which count as failures, like rejections, nor for those that a rollout holds back.
 * @param tell called for each node that has not applied it, and at the end with a count
 * @throws Failure unless all have applied it in time
 */
export async function waitForNodes(
  api: Api,
  plans: readonly Plan[],
  timeoutMs: number,
  tell: (text: string) => void | Promise<void>,
): Promise<void> {
  // New nodes have no id in the plan.
  const touched = new Set(plans.flatMap(({ nodes }) => nodes.map(({ node_name: name }) => name)));
  if (touched.size === 0) return;
  const until = performance.now() + timeoutMs;
  // An instance may be restarted meanwhile.
  while ((await patiently(() => areSome(api, touched), isAway)) && performance.now() < until) await sleep(askEveryMs);
  const behind = new Map<string, number>();
  const seen = await patiently(() => all(touchedBy(api, touched, {})), isAway);
  for (const { name, status, apply, held_by } of seen) {
    if (apply.state === 'applied' || held_by !== null) continue;
    const state = apply.state === 'rejected' || status === 'online' ? apply.state : 'offline';
    const why = apply.errors.map(({ path, message }) => `  ${shown(path)}: ${shown(message)}`).join('');
    await tell(`${shown(name)}  ${state}${why}`);
    behind.set(state, (behind.get(state) ?? 0) + 1);
  }
  if (behind.size === 0) return tell(`applied by ${counted(seen.length, 'node')}`);
  const total = [...behind.values()].reduce((sum, count) => sum + count);
  const states = [...behind].map(([state, count]) => `${count} ${state}`).join(', ');
  throw refused(`${total} of ${seen.length} nodes have not applied it: ${states}`);
}

/** Whether an online node has not yet reported on its newest configuration. */
async function areSome(api: Api, touched: ReadonlySet<string>): Promise<boolean> {
  for (const apply of ['none', 'pushed'] as const) {
    for await (const { held_by } of touchedBy(api, touched, { status: 'online', apply }))
      if (held_by === null) return true;
  }
  return false;
}

async function* touchedBy(
  api: Api,
  touched: ReadonlySet<string>,
  query: Readonly<Record<string, string>>,
): AsyncGenerator<Node> {
  for await (const page of pagesOf(api, typeOf('nodes'), query)) {
    for (const node of page as readonly Node[]) if (touched.has(node.name)) yield node;
  }
}

async function all(nodes: AsyncIterable<Node>): Promise<readonly Node[]> {
  const found: Node[] = [];
  for await (const node of nodes) found.push(node);
  return found;
}
