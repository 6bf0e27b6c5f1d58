/** Namespaces of their own for child processes, as another container has them. Not a test. */
import { canRun } from './can-run.js';

/**
 * The beginning of a command line that gives the rest of it new namespaces.
 * @param kinds options of `unshare`
 * @returns undefined where this machine does not allow it
 */
export function inNewNamespaces(...kinds: string[]): readonly string[] | undefined {
  const asRoot = ['unshare', ...kinds];
  const asUser = ['unshare', '-Ur', ...kinds];
  return [asRoot, asUser].find(([command = '', ...rest]) => canRun(command, ...rest, 'true'));
}
