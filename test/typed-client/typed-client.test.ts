/**
 * A client that is generated from the OpenAPI document by a common generator: it compiles in strict TypeScript, does the main
 * job against the running service, and lets nothing compile that the service would refuse (`docs/contract/rest.md#beside-api`).
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ServiceProcess } from '../../scripts/stack/service.js';
import { prepareService } from '../../scripts/stack/service.js';
import { projectRoot } from '../support/project-root.js';
import type { JsonData } from '../support/rest-fixture.js';

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
}, 60_000);
afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true, force: true });
  rmSync(dataDir, { recursive: true, force: true });
});

/** Runs a program to its end. @returns what it says */
function run(program: string, ...args: readonly string[]): { readonly code: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { cwd: folder, encoding: 'utf8' });
  return { code: status, said: `${stdout}${stderr}` };
}

it('is generated and compiles, and calls that the service would refuse do not', () => {
  const generated = run(generator, 'openapi.json', '--output', 'openapi.ts');
  expect(generated).toEqual({ code: 0, said: expect.not.stringMatching(/warn|error/i) });
  cpSync(join(here, 'src'), folder, { recursive: true });
  const options = { extends: join(projectRoot, 'tsconfig.json'), include: ['*.ts'], exclude: [] };
  const compilerOptions = { noEmit: false, outDir: 'out', rootDir: '.', lib: ['ES2023', 'DOM'], types: [] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...options, compilerOptions }));
  const compiled = run(join(projectRoot, 'node_modules', '.bin', 'tsc'), '-p', '.', '--pretty', 'false');
  expect(compiled).toEqual({ code: 0, said: '' });
}, 60_000);

it('creates, deploys, reads and deletes, with types for what it gets', async () => {
  const compiled: unknown = await import(pathToFileURL(join(folder, 'out', 'main-job.js')).href);
  // Its own type is beside the generated ones, which are not there before this test has run.
  const { mainJob } = compiled as { mainJob(...given: readonly string[]): Promise<JsonData> };
  const done = await mainJob(service.url, 'admin', password);
  const { node, upstream, plan, deployed, config } = done;
  expect(node).toMatchObject({ name: 'edge-1', status: 'pending', labels: { region: 'eu' } });
  expect(node.control_psk).toMatch(/^svcpsk1_/);
  expect(upstream).toMatchObject({ endpoint: 'app.example:8443', enabled: true });
  expect(plan).toMatchObject({ nodes: [{ node_id: node.id, removed: [] }], collisions: [] });
  expect(deployed).toMatchObject({ chain: { status: 'deployed' }, deployment: { nodes: [{ state: 'offline' }] } });
  expect(config).toMatchObject({ node_id: node.id, generation: deployed.deployment.nodes[0]?.generation });
  expect(done.actions).toEqual(['l4_chain.deploy', 'l4_chain.create']);
  expect(done.gone).toEqual({
    status: 404,
    failure: { success: false, data: null, error: expect.stringMatching(/^not_found: /) },
  });
});
