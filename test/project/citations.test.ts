/**
 * Every document that code, tests or documentation cites exists in this repository, with the cited heading. A citation is
 * a path from the root, with an anchor for the heading: docs/contract/rest.md#l4-chains. Markdown files may also cite
 * relative to themselves.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';

const self = 'test/project/citations.test.ts';
const root = fileURLToPath(new URL('../..', import.meta.url));

const citing = ['src', 'test', 'scripts', 'bench', 'proto', 'docs', 'README.md', '.ci'];
/** A path to a document, with an optional anchor. */
const cited = /(?<![\w./~-])((?:\.{1,2}\/)*[\w.-]+(?:\/[\w.-]+)*\.(?:md|txt))(?![\w])(?:#([\w-]+))?/g;

/** The files that git has or would have, below these paths; without any, all of them. */
const listed = (...below: readonly string[]): readonly string[] =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...below], {
    cwd: root,
    encoding: 'utf8',
    timeout: 60_000,
  }).split('\n');

function trackedFiles(): readonly string[] {
  return listed(...citing).filter(
    (file) => /\.(ts|md|proto|yml|sh)$/.test(file) && !file.startsWith('docs/contract/') && file !== self,
  );
}

/** The anchors of a document's headings, as code hosts derive them. */
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

/** The problem of a citation, or undefined. */
function problemOf(file: string, path: string, anchor: string | undefined): string | undefined {
  // A path that begins with a dot is relative to the file, like links and imports.
  const relative = file.endsWith('.md') || path.startsWith('.');
  const candidates = relative ? [normalize(join(dirname(file), path)), path] : [path];
  const document = candidates.find((candidate) => existsSync(join(root, candidate)));
  if (document === undefined) return 'no such file in the repository';
  if (anchor === undefined || anchorsOf(document).has(anchor)) return undefined;
  return `${document} has no heading #${anchor}`;
}

/** A source file that a document names in code style, as a path or by the end of one. */
const namedFile = /`((?:[\w.-]+\/)*[\w.-]+\.ts)`/g;
/** A folder or file that a document names from the root. */
const namedPath = /`((?:src|test|scripts|bench|proto)\/[\w./-]*)`/g;
/** It lists old measurements, under the names of their time. */
const history = 'test/mutation/README.md';

describe('citations', () => {
  it('of source files and folders in documents name what the repository has', () => {
    const all = listed().filter((file) => file !== '' && existsSync(join(root, file)));
    const folders = new Set(
      all.flatMap((file) => file.split('/').map((_, end, parts) => parts.slice(0, end).join('/'))),
    );
    const exists = (name: string): boolean =>
      folders.has(name.replace(/\/$/, '')) || all.some((file) => file === name || file.endsWith(`/${name}`));
    const documents = trackedFiles().filter((file) => file.endsWith('.md') && file !== history);
    const missing = documents.flatMap((file) => {
      const text = readFileSync(join(root, file), 'utf8');
      return [...text.matchAll(namedFile), ...text.matchAll(namedPath)].flatMap(([, name]) =>
        exists(name!.startsWith('.') ? join(dirname(file), name!) : name!) ? [] : [`${file}: ${name!}`],
      );
    });
    expect(missing).toEqual([]);
  });

  it('name a file of this repository and a heading that it has', () => {
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

  it('of a missing file or heading are reported', () => {
    expect(problemOf('src/app/app.ts', 'docs/contract/rest.md', 'l4-chains')).toBeUndefined();
    expect(problemOf('src/app/app.ts', 'rest.md', undefined)).toContain('no such file');
    expect(problemOf('src/app/app.ts', 'docs/contract/rest.md', 'l5-chains')).toContain('no heading');
    expect(problemOf('docs/contract/README.md', 'rest.md', undefined)).toBeUndefined();
  });
});
