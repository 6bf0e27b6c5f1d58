/** The separate processes of benchmarks. */
import { forkChild, type Child } from '../scripts/stack/child.js';

export { answerParent } from '../scripts/stack/child.js';
export type { Child };

/** Starts `bench/<name>`. @param execArgv arguments for Node, for example `--expose-gc` */
export function startChild(name: string, args: readonly string[] = [], execArgv: readonly string[] = []): Child {
  return forkChild(new URL(`./${name}`, import.meta.url), args, execArgv);
}
