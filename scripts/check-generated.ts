/**
 * `npm run generate:check`: generates the wire code into a temporary folder and compares it with src/gen file by file,
 * and likewise the reference pages with docs/reference and the fixtures for agents with examples/fixtures. Exits with 1
 * and names the files that differ: all of them are committed, so they can fall behind proto/ and the code.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { exit, stdout } from 'node:process';
import { fileURLToPath } from 'node:url';
import { agentFixtures } from './agent-fixtures.js';
import { referencePages } from './reference-pages.js';

const GENERATE_TIMEOUT_MS = 120_000;

/** Bytes as a string that differs whenever they do. */
const textOf = (bytes: Buffer): string => bytes.toString('latin1');

/** Files without a hand-written one. */
const without = (path: string, files: ReadonlyMap<string, string>): ReadonlyMap<string, string> =>
  new Map([...files].filter(([each]) => each !== path));

/** The files of a folder, in the form of `contents`. */
function inFolder(folder: string, files: ReadonlyMap<string, Buffer>): ReadonlyMap<string, string> {
  return new Map([...files].map(([path, bytes]) => [relative(folder, path), textOf(bytes)]));
}

function contents(folder: string): ReadonlyMap<string, string> {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  return new Map(
    entries
      .filter((entry) => entry.isFile())
      .map((entry) => {
        const path = join(entry.parentPath, entry.name);
        return [relative(folder, path), textOf(readFileSync(path))];
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

async function main(): Promise<number> {
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
    const pages = await referencePages();
    const committedPages = new Map(
      [...pages.keys()]
        .filter((path) => existsSync(join(root, path)))
        .map((path) => [path, readFileSync(join(root, path), 'utf8')]),
    );
    const fixtures = agentFixtures();
    const differing = [
      ...differences(contents(join(root, 'src/gen')), fresh),
      ...differences(committedPages, pages),
      ...differences(
        without('README.md', contents(join(root, 'examples/fixtures'))),
        inFolder('examples/fixtures', fixtures),
      ),
    ];
    for (const line of differing) stdout.write(`${line}\n`);
    stdout.write(
      differing.length === 0
        ? `src/gen matches proto/, docs/reference and examples/fixtures the code (${fresh.size + pages.size + fixtures.size} files)\n`
        : 'Generated files are out of date: run `npm run generate` and commit the result\n',
    );
    return differing.length === 0 ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

exit(await main());
