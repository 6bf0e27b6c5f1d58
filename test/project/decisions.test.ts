/** The pages of docs/decisions: each number stands in one place, the index leads there, and cited numbers exist. */
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectRoot } from '../support/project-root.js';

const read = (path: string): string => readFileSync(join(projectRoot, path), 'utf8');
const files = readdirSync(join(projectRoot, 'docs/decisions')).map((file) => `docs/decisions/${file}`);
const index = 'docs/decisions/README.md';
const retired = 'docs/decisions/retired.md';
const pages = files.filter((file) => file !== index && file !== retired);

const listed = (text: string): readonly number[] => text.split(', ').map(Number);
const numbersOf = (page: string): readonly number[] =>
  [...read(page).matchAll(/^\*\*(\d+)\. /gm)].map(([, number]) => Number(number));
/** Those of rows that begin with numbers. */
const retiredNumbers = [...read(retired).matchAll(/^\| (\d+(?:, \d+)*) \|/gm)].flatMap(([, row]) => listed(row!));
const decided = pages.flatMap(numbersOf);

describe('decisions', () => {
  it('have one place for each number', () => {
    const all = [...decided, ...retiredNumbers].toSorted((a, b) => a - b);
    expect(decided.length).toBeGreaterThan(200);
    expect(all.filter((number, place) => number === all[place - 1])).toEqual([]);
  });

  it('are found by the index', () => {
    const rows = [...read(index).matchAll(/^\| \[.+\]\((.+\.md)\) \| .+ \| (\d+(?:, \d+)*) \|$/gm)];
    const shown = rows.map(([, page, numbers]) => [`docs/decisions/${page}`, listed(numbers!)]);
    const held = pages.map((page) => [page, numbersOf(page).toSorted((a, b) => a - b)]);
    expect(new Map(shown as [string, number[]][])).toEqual(new Map(held as [string, number[]][]));
  });

  it('stand on pages of 30 to 120 lines', () => {
    const lengths = files.map((file) => [file, read(file).trimEnd().split('\n').length] as const);
    expect(lengths.filter(([, lines]) => lines < 30 || lines > 120)).toEqual([]);
  });

  it('exist where code and tests cite them', () => {
    const grep = ['grep', '-nIiE', 'decisions? [0-9]+', '--', 'src', 'test', 'scripts', 'bench', 'console', 'cli'];
    const lines = execFileSync('git', grep, { cwd: projectRoot, encoding: 'utf8', timeout: 60_000 })
      .trimEnd()
      .split('\n');
    const cited = lines.flatMap((line) =>
      [...line.matchAll(/decisions? (\d+(?:(?:, | and )\d+)*)/gi)].flatMap(([, numbers]) =>
        numbers!.split(/, | and /).map((number) => [line, Number(number)] as const),
      ),
    );
    expect(cited.length).toBeGreaterThan(0);
    expect(cited.filter(([, number]) => !decided.includes(number))).toEqual([]);
  });
});
