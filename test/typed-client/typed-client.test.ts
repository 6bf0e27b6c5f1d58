/**
 * Clients that are generated from the OpenAPI document by common generators, without a warning: in TypeScript, Go and Python
 * they do the main job against the running service. The one in TypeScript compiles strictly, and lets nothing compile that the
 * service would refuse (`docs/contract/rest.md#beside-api`).
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { projectRoot } from '../support/project-root.js';
import type { JsonData } from '../support/rest-fixture.js';
import { goGenerator, pythonGenerator } from './generators.js';

const here = dirname(fileURLToPath(import.meta.url));
/** Of the workspace: it needs an older TypeScript than this project has. */
const generator = join(here, 'node_modules', 'openapi-typescript', 'bin', 'cli.js');
const password = 'a password for this test';
const dataDir = mkdtempSync(join(tmpdir(), 'typed-client-'));

/** Inside the project, so that its packages are found. */
let folder: string;
let service: ServiceProcess;
beforeAll(async () => {
  mkdirSync(join(projectRoot, 'dist'), { recursive: true });
  folder = mkdtempSync(join(projectRoot, 'dist', 'typed-client-'));
  service = await prepareService({ dataDir, env: { SVC_ADMIN_PASSWORD: password } });
  await service.start();
  const document = await fetch(`${service.url}/openapi.json`);
  writeFileSync(join(folder, 'openapi.json'), await document.text());
});
afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true, force: true });
  rmSync(dataDir, { recursive: true, force: true });
});

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end, in `folder`. @returns what it says */
function runProgram(program: string, args: readonly string[], env: { readonly [name: string]: string } = {}): Ran {
  const options = { cwd: folder, encoding: 'utf8', env: { ...process.env, ...env }, timeout: 300_000 } as const;
  const { status, stdout, stderr } = spawnSync(program, args, options);
  return { code: status, stdout, stderr };
}

/** The same for a program of Node. */
function run(program: string, ...args: readonly string[]): { readonly code: number | null; readonly said: string } {
  const { code, stdout, stderr } = runProgram(process.execPath, [program, ...args]);
  return { code, said: `${stdout}${stderr}` };
}

/** What every client must have got, of a node, an upstream and a chain that it created, deployed, read and deleted. */
function expectMainJob({ node, upstream, plan, deployed, config, actions, gone }: JsonData): void {
  expect(node).toMatchObject({ name: 'edge-1', status: 'pending', labels: { region: 'eu' } });
  expect(node.control_psk).toMatch(/^svcpsk1_/);
  expect(upstream).toMatchObject({ endpoint: 'app.example:8443', enabled: true });
  expect(plan).toMatchObject({ nodes: [{ node_id: node.id, removed: [] }], collisions: [] });
  expect(deployed).toMatchObject({ chain: { status: 'deployed' }, deployment: { nodes: [{ state: 'offline' }] } });
  expect(config).toMatchObject({ node_id: node.id, generation: deployed.deployment.nodes[0]?.generation });
  expect(actions).toEqual(['l4_chain.deploy', 'l4_chain.create']);
  expect(gone).toEqual({
    status: 404,
    failure: { success: false, data: null, error: expect.stringMatching(/^not_found: /) },
  });
}

const silent = { code: 0, stdout: '', stderr: '' };

it('is generated and compiles, and calls that the service would refuse do not', () => {
  const generated = run(generator, 'openapi.json', '--output', 'openapi.ts');
  expect(generated).toEqual({ code: 0, said: expect.not.stringMatching(/warn|error/i) });
  cpSync(join(here, 'src'), folder, { recursive: true });
  const options = { extends: join(projectRoot, 'tsconfig.json'), include: ['*.ts'], exclude: [] };
  const compilerOptions = { noEmit: false, outDir: 'out', rootDir: '.', lib: ['ES2023', 'DOM'], types: [] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...options, compilerOptions }));
  const compiled = run(join(projectRoot, 'node_modules', '.bin', 'tsc'), '-p', '.', '--pretty', 'false');
  expect(compiled).toEqual({ code: 0, said: '' });
});

it('creates, deploys, reads and deletes, with types for what it gets', async () => {
  const compiled: unknown = await import(pathToFileURL(join(folder, 'out', 'main-job.js')).href);
  // Its own type is beside the generated ones, which are not there before this test has run.
  const { mainJob } = compiled as { mainJob(...given: readonly string[]): Promise<JsonData> };
  expectMainJob(await mainJob(service.url, 'admin', password));
});

it.skipIf(!existsSync(goGenerator))(
  'is generated in Go without a warning, and does the same',
  () => {
    cpSync(join(here, 'go'), join(folder, 'go'), { recursive: true });
    mkdirSync(join(folder, 'go', 'client'));
    const what = ['-generate', 'types,client', '-package', 'client', '-o', join('go', 'client', 'client.go')];
    expect(runProgram(goGenerator, [...what, 'openapi.json'])).toEqual(silent);
    // What is built once is found again in another folder.
    const build = ['build', '-C', 'go', '-trimpath', '-buildvcs=false', '-o', 'main-job', '.'];
    expect(runProgram('go', build, { CGO_ENABLED: '0' })).toEqual(silent);
    const { stdout, ...ended } = runProgram(join(folder, 'go', 'main-job'), [service.url, 'admin', password]);
    expect(ended).toEqual({ code: 0, stderr: '' });
    expectMainJob(JSON.parse(stdout));
  },
  300_000,
);

it.skipIf(!existsSync(pythonGenerator))(
  'is generated in Python without a warning, and does the same',
  () => {
    const bin = dirname(pythonGenerator);
    // The formatter of what it generates is beside it.
    const path = { PATH: `${bin}:${process.env.PATH}` };
    const generated = runProgram(
      pythonGenerator,
      ['generate', '--path', 'openapi.json', '--output-path', 'python'],
      path,
    );
    expect(generated).toEqual({ code: 0, stdout: 'Generating python\n', stderr: '' });
    const job = [join(here, 'python', 'main_job.py'), service.url, 'admin', password];
    const { stdout, ...ended } = runProgram(join(bin, 'python'), job, { PYTHONPATH: join(folder, 'python') });
    expect(ended).toEqual({ code: 0, stderr: '' });
    expectMainJob(JSON.parse(stdout));
  },
  120_000,
);
