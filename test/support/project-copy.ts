/**
 * A copy of this project's sources that a test changes and runs: another release, or one with another resource. It lies in
 * `dist/`, inside the project, so that its packages are found.
 */
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { compileProgramsOf, threadsOfTheService } from '../run/compile.js';
import { projectRoot } from './project-root.js';

export interface ProjectCopy {
  /** Root of its sources. */
  readonly root: string;
  /** Replaces a text that a file must hold exactly once. @param path from the root of the copy */
  replace(path: string, from: string, to: string): Promise<void>;
  /**
   * Compiles the service, with the threads that it starts, and other programs.
   * @param others paths from the root, without `.ts`
   * @returns root of the compiled programs, for `startProgram(…, { root })`
   */
  compile(...others: readonly string[]): Promise<string>;
  remove(): Promise<void>;
}

/** @param name begins the name of the copy's folder */
export async function copyProject(name: string, folders: readonly string[]): Promise<ProjectCopy> {
  const copies = join(projectRoot, 'dist', 'test-releases');
  await mkdir(copies, { recursive: true });
  const root = await mkdtemp(join(copies, `${name}-`));
  for (const folder of folders) await cp(join(projectRoot, folder), join(root, folder), { recursive: true });
  return {
    root,
    async replace(path, from, to) {
      const file = join(root, path);
      const text = await readFile(file, 'utf8');
      if (text.split(from).length !== 2) throw new Error(`"${from}" is not in ${path} exactly once`);
      await writeFile(
        file,
        text.replace(from, () => to),
      );
    },
    async compile(...others) {
      const out = join(root, 'compiled');
      await compileProgramsOf(root, ['src/main', ...threadsOfTheService, ...others], out);
      return out;
    },
    remove: () => rm(root, { recursive: true, force: true }),
  };
}
