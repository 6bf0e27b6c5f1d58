/** What a release says of itself agrees: package.json, the lock, the workspaces, the changelog. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { compilerVersion, dataFormat } from '../../src/kernel/release.js';
import { projectRoot } from '../support/project-root.js';

const read = (path: string): string => readFileSync(join(projectRoot, path), 'utf8');
const { version, workspaces } = JSON.parse(read('package.json')) as { version: string; workspaces: readonly string[] };

test('the version stands in the package.json of the root, and nowhere else', () => {
  const lock = JSON.parse(read('package-lock.json')) as { version: string; packages: Record<string, object> };
  expect([lock.version, lock.packages['']]).toEqual([version, expect.objectContaining({ version })]);
  for (const workspace of workspaces) {
    expect(JSON.parse(read(`${workspace}/package.json`))).not.toHaveProperty('version');
    expect(lock.packages[workspace]).not.toHaveProperty('version');
  }
});

const changelog = read('CHANGELOG.md');
/** The newest release first. */
const sections = changelog.split(/^## /m).slice(1);

test('the changelog begins with this version, and names its compiler version and its format', () => {
  expect(sections[0]).toMatch(
    new RegExp(`^\\[${version.replaceAll('.', '\\.')}\\] - (unreleased|\\d{4}-\\d\\d-\\d\\d)\n`),
  );
  expect(sections[0]).toMatch(new RegExp(`\\bCompiler version ${compilerVersion}\\b`));
  expect(sections[0]).toMatch(new RegExp(`\\bFormat ${dataFormat}\\b`));
  for (const section of sections)
    expect(section).toMatch(/^\[\d+\.\d+\.\d+\] - [^]*\bcompiler version \d+\b[^]*\bformat \d+\b/i);
});

test('the changelog names each event that was added since format 1 was frozen', () => {
  const typesIn = (path: string): readonly string[] =>
    read(`test/golden/format-1/${path}`)
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { type: string }).type);
  const first = new Set(typesIn('log.jsonl'));
  const added = new Set(typesIn('additions.jsonl').filter((type) => !first.has(type)));
  expect([...added].filter((type) => !changelog.includes(`\`${type}\``))).toEqual([]);
});
