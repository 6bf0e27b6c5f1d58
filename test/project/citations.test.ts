/**
 * Every document that code, tests and documentation cite is in this repository, and so is the heading. A citation is a
 * path from the root, with the heading as an anchor where it names one: docs/contract/rest.md#l4-chains. A Markdown
 * file may also link relative to itself.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';

const self = 'test/project/citations.test.ts';
const root = fileURLToPath(new URL('../..', import.meta.url));

const citing = ['src', 'test', 'scripts', 'bench', 'proto', 'docs', 'README.md', '.ci'];
/** The contract is taken over as it was written; its own references are between its files. */
const cited = /(?<![\w./~-])((?:\.{1,2}\/)*[\w.-]+(?:\/[\w.-]+)*\.(?:md|txt))(?![\w])(?:#([\w-]+))?/g;

function trackedFiles(): readonly string[] {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...citing], {
    cwd: root,
    encoding: 'utf8',
  });
  return listed
    .split('\n')
    .filter((file) => /\.(ts|md|proto|yml|sh)$/.test(file) && !file.startsWith('docs/contract/') && file !== self);
}

/** The anchors of a document, made from its headings as code hosts make them. */
function anchorsOf(path: string): ReadonlySet<string> {
  const text = readFileSync(join(root, path), 'utf8');
  const headings = [...text.matchAll(/^#{1,6} +(.+)$/gm)].map((match) => match[1]!.trim());
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replace(/ /g, '-'),
    ),
  );
}

/** What is wrong with a citation, or undefined. */
function problemOf(file: string, path: string, anchor: string | undefined): string | undefined {
  // A path that begins with a dot is relative to the file, as links and imports are.
  const besides = file.endsWith('.md') || path.startsWith('.');
  const places = besides ? [normalize(join(dirname(file), path)), path] : [path];
  const place = places.find((candidate) => existsSync(join(root, candidate)));
  if (place === undefined) return 'no such file, counted from the root of the repository';
  if (anchor === undefined || anchorsOf(place).has(anchor)) return undefined;
  return `${place} has no heading #${anchor}`;
}

describe('a citation', () => {
  it('leads to a file and a heading of this repository', () => {
    const broken = trackedFiles().flatMap((file) =>
      readFileSync(join(root, file), 'utf8')
        .split('\n')
        .flatMap((line, index) =>
          [...line.matchAll(cited)].flatMap(([whole, path, anchor]) => {
            const problem = problemOf(file, path!, anchor);
            return problem === undefined ? [] : [`${file}:${index + 1}: ${whole}: ${problem}`];
          }),
        ),
    );
    expect(broken).toEqual([]);
  });

  it('of something that is not there is found', () => {
    expect(problemOf('src/app.ts', 'docs/contract/rest.md', 'l4-chains')).toBeUndefined();
    expect(problemOf('src/app.ts', 'rest.md', undefined)).toContain('no such file');
    expect(problemOf('src/app.ts', 'docs/contract/rest.md', 'l5-chains')).toContain('no heading');
    expect(problemOf('docs/contract/README.md', 'rest.md', undefined)).toBeUndefined();
  });
});
