/**
 * `npm run test:mutation -- FOLDER [FILE ...]`: puts one small mistake after another into a folder of `src`, or only
 * into the named files, runs the tests that cover it, and lists the mistakes that no test notices. It is not part of
 * CI: a folder takes minutes to an hour. `test/mutation/README.md` explains the figures.
 */
import { spawnSync } from 'node:child_process';
import { argv, env, execPath, exit, stderr } from 'node:process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

interface Scope {
  /** The files to change: glob patterns. */
  readonly mutate: readonly string[];
  /** The tests that must notice: folders and files of in-process tests. `!` excludes a file that takes many seconds. */
  readonly tests: readonly string[];
}

/** They replace modules, which files that share a thread cannot. */
const alone = ['!test/commands/facts.test.ts', '!test/domain/large-fleets.test.ts'];

const scopes: Readonly<Record<string, Scope>> = {
  noise: { mutate: ['src/channel/noise/**/*.ts'], tests: ['test/noise'] },
  security: {
    mutate: ['src/security/**/*.ts'],
    tests: ['test/security', 'test/accounts', 'test/start/service-identity.test.ts', 'test/start/signing-key.test.ts'],
  },
  domain: { mutate: ['src/domain/**/*.ts'], tests: ['test/domain', 'test/commands', ...alone] },
  commands: {
    mutate: ['src/commands/**/*.ts'],
    tests: ['test/commands', 'test/instance', '!test/commands/two-instances-race.test.ts', ...alone],
  },
  delivery: {
    mutate: ['src/delivery/**/*.ts'],
    tests: ['test/delivery', '!test/delivery/whole-commands-only.test.ts'],
  },
  projections: {
    mutate: ['src/projections/**/*.ts'],
    tests: ['test/projections', '!test/projections/catching-up.test.ts'],
  },
  feed: { mutate: ['src/feed/**/*.ts'], tests: ['test/feed'] },
  notices: { mutate: ['src/notices/**/*.ts'], tests: ['test/notices'] },
  reports: { mutate: ['src/reports/**/*.ts'], tests: ['test/reports', 'test/history'] },
  rollouts: { mutate: ['src/rollouts/**/*.ts'], tests: ['test/rollouts'] },
  status: { mutate: ['src/status/**/*.ts'], tests: ['test/status', '!test/status/told.test.ts'] },
  'transport/agent': {
    mutate: ['src/transport/agent/**/*.ts'],
    tests: [
      'test/agent-protocol',
      '!test/agent-protocol/behind-a-balancer.test.ts',
      '!test/agent-protocol/crowded-listener.test.ts',
      '!test/agent-protocol/cut-off-instance.test.ts',
      '!test/agent-protocol/proven-pairs.test.ts',
      '!test/agent-protocol/listener.test.ts',
      '!test/agent-protocol/read-budget.test.ts',
      '!test/agent-protocol/second-implementation.test.ts',
      '!test/agent-protocol/slow-reader.test.ts',
      '!test/agent-protocol/strangers.test.ts',
      '!test/agent-protocol/what-a-node-writes.test.ts',
    ],
  },
};

function main(): number {
  const [folder, ...files] = argv.slice(2);
  const scope = folder === undefined ? undefined : scopes[folder];
  if (folder === undefined || scope === undefined) {
    stderr.write(
      `usage: npm run test:mutation -- FOLDER [FILE ...]\nFOLDER is one of ${Object.keys(scopes).join(', ')}\n`,
    );
    return 2;
  }
  const root = dirname(dirname(fileURLToPath(import.meta.url)));
  const name = folder.replaceAll('/', '-');
  const { status } = spawnSync(
    execPath,
    [
      join(root, 'node_modules/@stryker-mutator/core/bin/stryker.js'),
      'run',
      'test/mutation/stryker.json',
      '--mutate',
      (files.length > 0 ? files : scope.mutate).join(','),
      '--incrementalFile',
      `dist/mutation/${name}.json`,
    ],
    { cwd: root, stdio: 'inherit', env: { ...env, MUTATION_TESTS: env.MUTATION_TESTS ?? scope.tests.join(',') } },
  );
  return status ?? 1;
}

exit(main());
