/** `npm run lint` enforces the import table: it reports forbidden imports and accepts the others. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { checkTree } from '../../scripts/check-imports.js';
import { checkFile, folderCycles } from '../../scripts/import-table.js';

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const DECLARED = { runtime: new Set(['zod', 'lmdb', 'fastify', '@fastify/cors']), development: new Set(['vitest']) };

const reasons = (file: string, source: string): readonly string[] =>
  checkFile(file, source, DECLARED).map((violation) => `${violation.line}: ${violation.reason}`);

describe('the import check reports a forbidden import', () => {
  it.each([
    ['src/kernel/clock.ts', '../domain/fleet.js', 'src/kernel may import no other part; not domain'],
    ['src/domain/node/state.ts', '../../storage/event-store.js', 'src/domain may import kernel; not storage'],
    [
      'src/projections/nodes.ts',
      '../delivery/target.js',
      'src/projections may import domain, security, storage, kernel; not delivery',
    ],
    [
      'src/agent/relay.ts',
      '../transport/agent/server.js',
      'src/agent may import channel, gen, transport/listener, kernel; not transport/agent',
    ],
    ['src/transport/rest/nodes.ts', '../agent/server.js', 'not transport/agent'],
    ['src/delivery/target.ts', '../app.js', 'src/delivery does not import the wiring of the program'],
    ['src/delivery/target.ts', '../../scripts/demo.js', 'src imports nothing from outside src'],
    [
      'console/src/nodes/nodes.ts',
      '../chains/chains.js',
      'console/src/nodes may import console/src/shared; not chains',
    ],
    [
      'console/src/shared/ui/when.tsx',
      '../../app/router.js',
      'console/src/shared may import console/src/shared; not app',
    ],
    ['console/src/nodes/nodes.ts', '../../../src/kernel/ids.js', 'console/src/ imports nothing from outside it'],
    ['cli/src/service.ts', '../../src/kernel/ids.js', 'cli/src/ imports nothing from outside it'],
  ])('%s from %s', (file, specifier, reason) => {
    expect(reasons(file, `import { x } from '${specifier}';`)).toEqual([expect.stringContaining(`1: `)]);
    expect(reasons(file, `import { x } from '${specifier}';`)[0]).toContain(reason);
  });

  it.each([
    ["import type { X } from '../storage/port.js';"],
    ["export * from '../storage/port.js';"],
    ["export { x } from '../storage/port.js';"],
    ['import {\n  a,\n  b,\n} from "../storage/port.js";'],
    ["import '../storage/port.js';"],
    ["const x = await import('../storage/port.js');"],
    ["type X = import('../storage/port.js').X;"],
    ["const s = 'http://x'; import('../storage/port.js');"],
  ])('in every form: %s', (source) => {
    expect(reasons('src/channel/cipher.ts', source)).toHaveLength(1);
  });

  it('in domain of any package or module of Node, and a read of the clock', () => {
    const source =
      "import { z } from 'zod';\nimport { hash } from 'node:crypto';\nconst now = new Date();\nconst then = new Date(0);";
    expect(reasons('src/domain/fleet.ts', source)).toEqual([
      '1: src/domain is pure: it imports no package and no module of Node',
      '2: src/domain is pure: it imports no package and no module of Node',
      '3: src/domain has no clock: it gets the time as a value',
    ]);
  });

  it('of a package that is reserved for another part, not listed, or for development only', () => {
    expect(reasons('src/commands/gateway.ts', "import { open } from 'lmdb';")).toEqual([
      '1: only src/storage may import lmdb',
    ]);
    expect(reasons('src/commands/gateway.ts', "import cors from '@fastify/cors';")).toEqual([
      '1: only src/transport/rest may import @fastify/cors',
    ]);
    expect(reasons('src/commands/gateway.ts', "import x from 'left-out/deep';")).toEqual([
      '1: package.json does not list left-out among its dependencies',
    ]);
    expect(reasons('src/commands/gateway.ts', "import x from 'vitest';")).toEqual([
      '1: package.json does not list vitest among its dependencies',
    ]);
    expect(reasons('test/a.test.ts', "import x from 'vitest';")).toEqual([]);
  });

  it('in a file of src that no row covers', () => {
    expect(reasons('src/utils/things.ts', '')).toEqual(['1: no row of the import table covers this file']);
  });
});

it('the import check accepts allowed imports, and imports inside comments', () => {
  expect(
    reasons('src/storage/embedded/log.ts', "import { open } from 'lmdb';\nimport { e } from '../../kernel/errors.js';"),
  ).toEqual([]);
  expect(reasons('src/transport/agent/server.ts', "import { h } from '../../channel/noise/handshake.js';")).toEqual([]);
  expect(reasons('src/app/app.ts', "import { h } from './transport/rest/app.js';")).toEqual([]);
  expect(
    reasons('src/channel/a.ts', "// import { x } from '../storage/a.js';\n/* import('../storage/b.js') */"),
  ).toEqual([]);
});

it('the import check finds nothing in this repository', () => {
  const { files, violations } = checkTree(ROOT);
  expect(violations).toEqual([]);
  expect(files).toBeGreaterThan(10);
});

describe('the linter', () => {
  const folders: string[] = [];
  afterEach(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  });

  /** Lints one file by the project's rules in a temporary folder. @returns the names of the broken rules */
  function lint(file: string, source: string): readonly string[] {
    const folder = mkdtempSync(join(tmpdir(), 'svc-lint-'));
    folders.push(folder);
    copyFileSync(join(ROOT, '.oxlintrc.json'), join(folder, '.oxlintrc.json'));
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), source);
    const run = spawnSync(join(ROOT, 'node_modules/.bin/oxlint'), ['--deny-warnings', '--format=json'], {
      cwd: folder,
      encoding: 'utf8',
      timeout: 30_000,
    });
    const report = JSON.parse(run.stdout) as { diagnostics: readonly { code: string }[] };
    return report.diagnostics.map((diagnostic) => diagnostic.code);
  }

  it.each([
    ['Date.now()', 'eslint(no-restricted-properties)'],
    ['Math.random()', 'eslint(no-restricted-properties)'],
    ['globalThis.crypto', 'eslint(no-restricted-properties)'],
    ['process.env', 'eslint(no-restricted-globals)'],
    ['crypto.randomUUID()', 'eslint(no-restricted-globals)'],
  ])('refuses %s in domain but not elsewhere', (expression, rule) => {
    expect(lint('src/domain/a.ts', `export const a = ${expression};\n`)).toEqual([rule]);
    expect(lint('src/commands/a.ts', `export const a = ${expression};\n`)).toEqual([]);
  });

  it('refuses any, non-null assertions and default exports in src, but allows non-null assertions in tests', () => {
    expect(lint('src/kernel/a.ts', 'export const a = (x: any) => x;\n')).toEqual(['typescript(no-explicit-any)']);
    const assertion = 'export const a = (x: string | null) => x!.length;\n';
    expect(lint('src/kernel/a.ts', assertion)).toEqual(['typescript(no-non-null-assertion)']);
    expect(lint('test/a.test.ts', assertion)).toEqual([]);
    expect(lint('src/kernel/a.ts', 'export default 1;\n')).toEqual(['import(no-default-export)']);
  });
});

describe('import cycles between folders', () => {
  const file = (path: string, ...imports: readonly string[]) => ({
    path: `src/domain/${path}`,
    source: imports.map((specifier) => `import type { x } from '${specifier}';\n`).join(''),
  });

  it('are found through types and over several folders', () => {
    const files = [
      file('node/a.ts', '../fleet/b.js', './c.js'),
      file('fleet/b.ts', '../chain/d.js'),
      file('chain/d.ts', '../node/a.js', '../../kernel/json.js'),
      file('upstream/e.ts', '../node/a.js'),
    ];
    expect(folderCycles('src/domain', files)).toEqual([['chain', 'node', 'fleet', 'chain']]);
    expect(folderCycles('src/domain', files.slice(1))).toEqual([]);
  });

  it('are not in this tree', () => {
    expect(checkTree(ROOT).cycles).toEqual([]);
  });
});
