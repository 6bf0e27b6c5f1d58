/**
 * A release of this service with a newer compiler, for tests of upgrades: a copy of `src/` with a higher compiler
 * version and one other output, the name in a rule's origin, which does not affect traffic.
 */
import { compilerVersion } from '../../src/kernel/release.js';
import { copyProject } from './project-copy.js';

export interface NewerRelease {
  /** For starting one of its programs: `startProgram(…, { root })`. */
  readonly root: string;
  readonly compilerVersion: number;
  /** What its compiler appends to the name of a rule's origin. */
  readonly mark: string;
  remove(): Promise<void>;
}

export async function makeNewerRelease(): Promise<NewerRelease> {
  const { replace, compile, remove } = await copyProject('newer', ['src']);
  const [newer, mark] = [compilerVersion + 1, ' (of the newer compiler)'];
  const version = (number: number): string => `compilerVersion = ${number};`;
  await replace('src/kernel/release.ts', version(compilerVersion), version(newer));
  const name = 'resource_name: chain.name,';
  await replace('src/domain/chain/rules.ts', name, `resource_name: chain.name + '${mark}',`);
  return { root: await compile(), compilerVersion: newer, mark, remove };
}
