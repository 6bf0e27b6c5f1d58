/**
 * `npm run test:node -- VERSION [TEST ...]`: runs the tests on another version of Node, for example `24`. The binary
 * comes from the npm package `node-<platform>-<arch>`, is kept in `dist/node`, and is also used by child processes of
 * the tests. It is not part of CI, which runs on the installed Node.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { arch, argv, env, exit, platform, stderr, stdout } from 'node:process';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The tests that run by default: all but those that only read files, build copies of the project or take minutes. */
const mainTests = [
  'test/accounts',
  'test/agent',
  'test/agent-protocol',
  'test/backups',
  'test/commands',
  'test/conformance',
  'test/delivery',
  'test/domain',
  'test/e2e/main-job',
  'test/enc',
  'test/feed',
  'test/instance',
  'test/kernel',
  'test/log-chain',
  'test/maintenance',
  'test/noise',
  'test/notices',
  'test/projections',
  'test/reality',
  'test/reports',
  'test/rest',
  'test/rollouts',
  'test/security',
  'test/start',
  'test/status',
  'test/storage',
  'test/svcctl',
  'test/webhooks',
  'test/wire',
];

function nodeBinary(version: string): string {
  const folder = join(root, 'dist', 'node', version);
  const binary = join(folder, 'node_modules', `node-${platform}-${arch}`, 'bin', 'node');
  if (existsSync(binary)) return binary;
  mkdirSync(folder, { recursive: true });
  const wanted = `node-${platform}-${arch}@${version}`;
  const { status } = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--no-save', '--prefix', folder, wanted], {
    stdio: 'inherit',
  });
  if (status !== 0 || !existsSync(binary)) throw new Error(`npm has no package ${wanted}`);
  return binary;
}

function main(): number {
  const [version, ...tests] = argv.slice(2);
  if (version === undefined || !/^\d+(\.\d+){0,2}$/.test(version)) {
    stderr.write(
      'usage: npm run test:node -- VERSION [TEST ...]\nVERSION is a version of Node, for example 24 or 24.21.0\n',
    );
    return 2;
  }
  const binary = nodeBinary(version);
  stdout.write(`Node ${spawnSync(binary, ['--version'], { encoding: 'utf8' }).stdout}`);
  const { status } = spawnSync(
    binary,
    [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...(tests.length > 0 ? tests : mainTests)],
    // First in the path, for programs that start `node` by name.
    { cwd: root, stdio: 'inherit', env: { ...env, PATH: `${dirname(binary)}${delimiter}${env.PATH ?? ''}` } },
  );
  return status ?? 1;
}

exit(main());
