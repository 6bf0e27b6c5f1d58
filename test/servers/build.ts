/**
 * `npm run test:servers`: builds the programs for tests that are not written in JavaScript, unless they are up to date: servers,
 * and generators of clients. `npm test` does this first. Without Go or Python, or what they fetch, the suites that need these
 * programs are skipped, and `npm test` lists them at its end.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { projectRoot } from '../support/project-root.js';
import { examplePython } from '../agent-check/example-python.js';
import { goGenerator, pythonGenerator } from '../typed-client/generators.js';
import { dataPlaneBinary } from './data-plane-process.js';
import { ferretDbBinary } from './ferretdb-process.js';
import { realityBinary } from './reality-process.js';
import { xrayBinary } from './xray-process.js';

interface Step {
  readonly command: readonly [program: string, ...args: readonly string[]];
  /** What is wrong when it fails, so that suites are skipped; without it the build has failed. */
  readonly missing?: string;
}

interface TestProgram {
  readonly name: string;
  /** Its sources, from here. */
  readonly folder: string;
  readonly binary: string;
  readonly steps: readonly Step[];
}

function goProgram(name: string, folder: string, binary: string, ...what: readonly string[]): TestProgram {
  const steps: readonly Step[] = [
    { command: ['go', 'version'], missing: 'Go is missing' },
    { command: ['go', 'mod', 'download'], missing: 'Go modules cannot be fetched' },
    { command: ['go', 'build', '-trimpath', '-buildvcs=false', '-o', binary, ...what] },
  ];
  return { name, folder, binary, steps };
}

/** A program of a Python package, in an environment of its own. @param packages file that lists them */
function pythonProgram(name: string, folder: string, packages: string, binary: string): TestProgram {
  const bin = dirname(binary);
  const install = ['install', '--quiet', '--disable-pip-version-check', '--requirement', join(projectRoot, packages)];
  const steps: readonly Step[] = [
    { command: ['python3', '-m', 'venv', '--clear', dirname(bin)], missing: 'Python or its module venv is missing' },
    { command: [join(bin, 'pip'), ...install], missing: 'Python packages cannot be fetched' },
  ];
  return { name, folder, binary, steps };
}

const pythonPackages = 'test/typed-client/python/requirements.txt';
const examplePackages = 'examples/agent-py/requirements.txt';
const oapiCodegen = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen';

const programs: readonly TestProgram[] = [
  goProgram('FerretDB', 'ferretdb', ferretDbBinary, '-tags', 'ferretdb_no_postgresql', '.'),
  goProgram('the reference implementation of REALITY', 'reality', realityBinary, '.'),
  goProgram('the peer of gateways that was written from the documents', 'data-plane', dataPlaneBinary, '.'),
  goProgram('stock Xray', 'xray', xrayBinary, 'github.com/xtls/xray-core/main'),
  goProgram('the generator of Go clients', '../typed-client/go', goGenerator, oapiCodegen),
  pythonProgram('the generator of Python clients', '../typed-client/python', pythonPackages, pythonGenerator),
  pythonProgram('the example agent in Python', '../../examples/agent-py', examplePackages, examplePython),
];

/** Of one step; modules and packages come over the network. */
const withinMs = 15 * 60_000;

const sourceOf = ({ folder }: TestProgram): string => fileURLToPath(new URL(folder, import.meta.url));

function run(program: TestProgram, [command, ...args]: Step['command']): boolean {
  const { status } = spawnSync(command, args, {
    cwd: sourceOf(program),
    env: { ...process.env, CGO_ENABLED: '0' },
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: withinMs,
  });
  return status === 0;
}

const modified = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

function isFresh(program: TestProgram): boolean {
  const source = sourceOf(program);
  const newest = Math.max(...readdirSync(source).map((file) => modified(join(source, file))));
  return modified(program.binary) > newest;
}

function build(program: TestProgram): void {
  const { name, binary, steps } = program;
  if (isFresh(program)) {
    console.log(`test servers: ${name} is up to date`);
    return;
  }
  mkdirSync(dirname(binary), { recursive: true });
  console.log(`test servers: building ${name}, which takes longer the first time`);
  const failed = steps.find(({ command }) => !run(program, command));
  if (failed === undefined) return;
  // With an old binary the suites would run against another program than the sources describe.
  rmSync(binary, { force: true });
  if (failed.missing === undefined) {
    process.stderr.write(`test servers: ${name} cannot be built\n`);
    process.exitCode = 1;
  } else process.stderr.write(`test servers: ${failed.missing}, so suites that need ${name} are skipped\n`);
}

for (const program of programs) build(program);
