/**
 * Compiles the programs that tests start as processes: plain Node starts them several times faster than through a
 * compiler, and half as fast again when a program is few files instead of two thousand. The programs of `src/`, which
 * tests start hundreds of times, become CommonJS, for which Node 20 can keep machine code (`launch.ts`); that halves the
 * processor time of a start once more. Types are not looked at; `npm test` checks them first.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type BuildOptions, type Plugin } from 'esbuild';
import { banner, native, unused } from '../../packaging/bundle.js';
import { buildAgent } from '../../scripts/build-agent.js';
import { projectRoot } from '../support/project-root.js';
import { machineCodeOf } from './launch.js';
import { recordMachineCode } from './machine-code.js';

/**
 * Compiles programs of `root` into `out`, each as a file with the same path.
 * @param programs paths from `root`, without `.ts`
 * @throws Error with what the compiler says, for example about syntax
 */
export async function compileProgramsOf(root: string, programs: readonly string[], out: string): Promise<void> {
  const js = (path: string): string => join(out, relative(root, path).replace(/\.ts$/, '.js'));
  /** A module finds others beside itself by its URL, wherever its code ends up. */
  const ownUrls: Plugin = {
    name: 'own-urls',
    setup(to) {
      to.onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const text = readFileSync(path, 'utf8');
        const url = JSON.stringify(pathToFileURL(js(path)).href);
        return { contents: text.replaceAll('import.meta.url', url), loader: 'ts' };
      });
    },
  };
  const common: BuildOptions = {
    outbase: root,
    outdir: out,
    bundle: true,
    platform: 'node',
    target: 'node20',
    external: [...native, ...unused],
    plugins: [ownUrls],
    logLevel: 'silent',
  };
  const entries = (of: readonly string[]): string[] => of.map((program) => join(root, `${program}.ts`));
  const started = programs.filter((program) => program.startsWith('src/'));
  const others = programs.filter((program) => !started.includes(program));
  // Node takes machine code for that of a source when the source is as long.
  for (const program of started) rmSync(machineCodeOf(join(out, `${program}.cjs`)), { force: true });
  await Promise.all([
    build({ ...common, entryPoints: entries(others), format: 'esm', splitting: true, banner: { js: banner } }),
    build({ ...common, entryPoints: entries(started), format: 'cjs', outExtension: { '.js': '.cjs' } }),
    build({
      ...common,
      entryPoints: [join(projectRoot, 'test', 'run', 'launch.ts')],
      outbase: join(projectRoot, 'test', 'run'),
      format: 'cjs',
      outExtension: { '.js': '.cjs' },
    }),
  ]);
  for (const program of started) writeLauncher(join(out, `${program}.js`), join(out, 'launch.cjs'));
}

/** The program under the path that it has in the build. */
function writeLauncher(path: string, launch: string): void {
  mkdirSync(dirname(path), { recursive: true });
  const own = `./${basename(path, '.js')}.cjs`;
  const text = [
    "import { createRequire } from 'node:module';",
    "import { fileURLToPath } from 'node:url';",
    `const { launch } = createRequire(import.meta.url)('./${relative(dirname(path), launch)}');`,
    `launch(fileURLToPath(new URL('${own}', import.meta.url)));`,
  ];
  writeFileSync(path, `${text.join('\n')}\n`);
}

/** Shared files carry a hash in their names: those of earlier builds stay until no running test can need them. */
function removeOldBuilds(): void {
  const paths = readdirSync(compiledPrograms)
    .filter((file) => file.endsWith('.js'))
    .map((name) => join(compiledPrograms, name));
  const written = new Map(paths.map((path) => [path, statSync(path).mtimeMs]));
  // By the clock of the file system, which need not be that of this process.
  const anHourAgo = Math.max(...written.values()) - 3_600_000;
  for (const [path, at] of written) if (at < anHourAgo) rmSync(path);
}

const sources = ['src', 'scripts', 'test'];
const compiledPrograms = join(projectRoot, 'dist', 'test-programs');

/** Compiles this project's programs into `dist/test-programs`, unless that is up to date. @throws as above */
export async function compilePrograms(): Promise<void> {
  const stamp = join(compiledPrograms, 'sources');
  const now = fingerprint();
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === now) return;
  await compileProgramsOf(projectRoot, [...builtPrograms(), ...testPrograms()], compiledPrograms);
  removeOldBuilds();
  await recordMachineCode();
  // The service serves it.
  buildAgent(join(projectRoot, 'dist', 'agent', 'gateway-agent.cjs'));
  writeFileSync(stamp, now);
}

/** The worker threads of the service: paths from the root, without `.ts`. */
export const threadsOfTheService: readonly string[] = [
  'src/projections/history/worker',
  'src/transport/rest/fleet-file/texts-worker',
  'src/backups/archive-thread',
];

/** What `package.json` starts from the build, without the benchmarks, the worker threads of the service, and the simulator's processes. */
function builtPrograms(): readonly string[] {
  const text = readFileSync(join(projectRoot, 'package.json'), 'utf8');
  return [...text.matchAll(/dist\/((?:src|scripts)\/\S+)\.js/g)]
    .map(([, program = '']) => program)
    .concat(threadsOfTheService, 'scripts/simulate/process');
}

function testPrograms(): readonly string[] {
  return modulesOf('test').filter((path) => /\/children\/|^test\/servers\/(stores|eventstoredb\/main)$/.test(path));
}

/** Paths without `.ts`. */
function modulesOf(folder: string): readonly string[] {
  const names = readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.ts')).map((name) => `${folder}/${name.slice(0, -'.ts'.length)}`);
}

/** Changes with the name, size or time of any source. */
function fingerprint(): string {
  const hash = createHash('sha256');
  for (const path of ['package.json', ...sources.flatMap(modulesOf).map((module) => `${module}.ts`)].sort()) {
    const { size, mtimeMs } = statSync(join(projectRoot, path));
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  }
  return hash.digest('hex');
}
