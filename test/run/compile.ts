/**
 * Compiles TypeScript for tests that start programs of this project as processes: plain Node starts several times faster
 * than one that compiles. File by file, without looking at types, which `npm test` checks first.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../support/project-root.js';

/**
 * Compiles every `.ts` file of these folders of `root` into the same folders of `out`.
 * @throws Error with what the compiler says, for example about syntax
 */
export function compileSources(root: string, folders: readonly string[], out: string): void {
  mkdirSync(out, { recursive: true });
  const config = join(out, 'tsconfig.json');
  const compilerOptions = {
    noEmit: false,
    noCheck: true,
    noResolve: true,
    types: [],
    sourceMap: true,
    rootDir: root,
    outDir: out,
  };
  const include = folders.map((folder) => join(root, folder));
  const exclude: string[] = [];
  writeFileSync(
    config,
    JSON.stringify({ extends: join(projectRoot, 'tsconfig.json'), compilerOptions, include, exclude }),
  );
  const tsc = join(projectRoot, 'node_modules', '.bin', 'tsc');
  const { status, stdout, error } = spawnSync(tsc, ['-p', config, '--pretty', 'false'], { encoding: 'utf8' });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`the programs for tests do not compile:\n${stdout}`);
}

const sources = ['src', 'scripts', 'test'];
const compiledPrograms = join(projectRoot, 'dist', 'test-programs');

/** Compiles this project into `dist/test-programs`, unless that is up to date. @throws Error as `compileSources` */
export function compilePrograms(): void {
  const stamp = join(compiledPrograms, 'sources');
  const now = fingerprint();
  if (readIfThere(stamp) === now) return;
  compileSources(projectRoot, sources, compiledPrograms);
  removeWithoutSource();
  writeFileSync(stamp, now);
}

/** A module that is gone must not be found. The rest stays: another run may be starting programs from it. */
function removeWithoutSource(): void {
  for (const name of readdirSync(compiledPrograms, { recursive: true, encoding: 'utf8' })) {
    const source = join(projectRoot, name.replace(/\.js(\.map)?$/, '.ts'));
    if (/\.js(\.map)?$/.test(name) && !existsSync(source)) rmSync(join(compiledPrograms, name));
  }
}

/** Changes with the name, size or time of any source. */
function fingerprint(): string {
  const hash = createHash('sha256');
  for (const folder of sources) {
    const names = readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' });
    for (const name of names.filter((path) => path.endsWith('.ts')).sort()) {
      const { size, mtimeMs } = statSync(join(projectRoot, folder, name));
      hash.update(`${folder}/${name} ${size} ${mtimeMs}\n`);
    }
  }
  return hash.digest('hex');
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
