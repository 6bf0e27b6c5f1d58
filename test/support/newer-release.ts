/**
 * A release of this service with a newer compiler, for tests of upgrades: a copy of `src/` with a higher compiler
 * version and one other output, the name in a rule's origin, which does not affect traffic. It lies in `dist/`, inside
 * the project, so that its packages are found.
 */
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compilerVersion } from '../../src/domain/compile/version.js';

export interface NewerRelease {
  /** For starting one of its programs: `startProgram(…, { root })`. */
  readonly root: string;
  readonly compilerVersion: number;
  /** What its compiler appends to the name of a rule's origin. */
  readonly mark: string;
  remove(): Promise<void>;
}

export async function makeNewerRelease(): Promise<NewerRelease> {
  const project = fileURLToPath(new URL('../..', import.meta.url));
  const releases = join(project, 'dist', 'test-releases');
  await mkdir(releases, { recursive: true });
  const root = await mkdtemp(join(releases, 'newer-'));
  const [newer, mark] = [compilerVersion + 1, ' (of the newer compiler)'];
  await cp(join(project, 'src'), join(root, 'src'), { recursive: true });
  const replace = async (path: string, from: string, to: string): Promise<void> => {
    const file = join(root, 'src', path);
    const text = await readFile(file, 'utf8');
    if (text.split(from).length !== 2) throw new Error(`"${from}" is not in ${path} exactly once`);
    await writeFile(
      file,
      text.replace(from, () => to),
    );
  };
  const version = (number: number): string => `compilerVersion = ${number};`;
  await replace('domain/compile/version.ts', version(compilerVersion), version(newer));
  const name = 'resource_name: chain.name,';
  await replace('domain/chain/rules.ts', name, `resource_name: chain.name + '${mark}',`);
  return { root, compilerVersion: newer, mark, remove: () => rm(root, { recursive: true, force: true }) };
}
