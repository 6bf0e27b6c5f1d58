/**
 * The compiler's output for recorded fleets. It may change only with the compiler version: otherwise instances and agents
 * would have different configurations under the same generation (`docs/contract/domain.md#generation`).
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import type { NodeSnapshot } from '../../src/domain/snapshot/snapshot.js';
import { compilerVersion } from '../../src/kernel/release.js';
import type { RecordedCommand } from '../../src/kernel/event.js';
import { canonicalJson } from '../../src/kernel/json.js';
import { foldOf } from '../support/fleet.js';
import { goldenFleets } from '../support/golden-fleets.js';

interface Golden {
  readonly log: readonly RecordedCommand[];
  /** By node id. */
  readonly snapshots: { readonly [nodeId: string]: NodeSnapshot };
}

const root = join(dirname(fileURLToPath(import.meta.url)), '..', 'golden');
const folder = join(root, `compiler-v${compilerVersion}`);

const remedy =
  'If the change is intended, raise compilerVersion in src/kernel/release.ts and record the new outputs with ' +
  '`RECORD_GOLDEN=1 npx vitest run test/domain/compiler-golden.test.ts`. Recorded outputs are never edited.';

function compileAll(log: readonly RecordedCommand[]): Golden['snapshots'] {
  const fleet = foldOf(log);
  return Object.fromEntries([...fleet.tables.node.ids()].sort().map((id) => [id, compileNode(fleet, id)]));
}

// Writes only missing files, so recording cannot hide a change under an old version.
if (process.env['RECORD_GOLDEN'] === '1') {
  mkdirSync(folder, { recursive: true });
  for (const [name, log] of goldenFleets()) {
    const file = join(folder, `${name}.json`);
    if (existsSync(file)) continue;
    const golden: Golden = { log, snapshots: compileAll(log) };
    writeFileSync(file, `${JSON.stringify(JSON.parse(canonicalJson(golden)), null, 1)}\n`);
  }
}

const files = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.json')) : [];

describe(`compiler version ${compilerVersion}`, () => {
  it('has golden outputs', () => {
    expect(
      files.length,
      `there are no golden outputs for compiler version ${compilerVersion}. ${remedy}`,
    ).toBeGreaterThan(3);
  });

  it.each(files)('compiles %s to the recorded output', (file) => {
    const golden = JSON.parse(readFileSync(join(folder, file), 'utf8')) as Golden;
    const compiled = compileAll(golden.log);
    const same = canonicalJson(compiled) === canonicalJson(golden.snapshots);
    if (!same)
      expect(compiled, `the compiler's output changed and the compiler version did not. ${remedy}`).toEqual(
        golden.snapshots,
      );
    expect(same, `the compiler's output changed and the compiler version did not. ${remedy}`).toBe(true);
  });

  it('is the highest version with golden outputs', () => {
    const numbers = readdirSync(root).flatMap((name) => /^compiler-v(\d+)$/.exec(name)?.[1] ?? []);
    expect(Math.max(...numbers.map(Number))).toBe(compilerVersion);
  });
});
