/**
 * `npm run generate:check`: generates the wire code into a temporary folder and compares it with src/gen file by file.
 * Exits with 1 and names the files that differ: src/gen is committed, so it can fall behind proto/.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { exit, stdout } from 'node:process';
import { fileURLToPath } from 'node:url';

const GENERATE_TIMEOUT_MS = 120_000;

function contents(folder: string): ReadonlyMap<string, string> {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  return new Map(
    entries
      .filter((entry) => entry.isFile())
      .map((entry) => {
        const path = join(entry.parentPath, entry.name);
        return [relative(folder, path), readFileSync(path, 'utf8')];
      }),
  );
}

function differences(committed: ReadonlyMap<string, string>, fresh: ReadonlyMap<string, string>): readonly string[] {
  const paths = [...new Set([...committed.keys(), ...fresh.keys()])].toSorted();
  return paths.flatMap((path) => {
    if (!committed.has(path)) return [`missing:  ${path}`];
    if (!fresh.has(path)) return [`extra:    ${path}`];
    return committed.get(path) === fresh.get(path) ? [] : [`differs:  ${path}`];
  });
}

function main(): number {
  const root = dirname(dirname(fileURLToPath(import.meta.url)));
  const folder = mkdtempSync(join(tmpdir(), 'svc-generate-'));
  try {
    const buf = spawnSync(join(root, 'node_modules/.bin/buf'), ['generate', '--output', folder], {
      cwd: root,
      stdio: 'inherit',
      timeout: GENERATE_TIMEOUT_MS,
    });
    if (buf.status !== 0) {
      stdout.write(`buf generate failed: ${buf.error?.message ?? `exit code ${String(buf.status)}`}\n`);
      return 1;
    }
    const fresh = contents(join(folder, 'src/gen'));
    const differing = differences(contents(join(root, 'src/gen')), fresh);
    for (const line of differing) stdout.write(`${line}\n`);
    stdout.write(
      differing.length === 0
        ? `src/gen matches proto/ (${fresh.size} files)\n`
        : 'src/gen does not match proto/: run `npm run generate` and commit the result\n',
    );
    return differing.length === 0 ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

exit(main());
