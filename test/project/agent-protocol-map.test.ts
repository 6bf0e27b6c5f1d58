/**
 * `test/agent-protocol/README.md` has a row for every sentence of the contract of the agent protocol, and every row has its
 * sentence and its tests.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectRoot } from '../support/project-root.js';

interface Row {
  readonly heading: string;
  readonly quote: string;
  readonly tests: readonly string[];
}

const read = (path: string): readonly string[] => readFileSync(join(projectRoot, path), 'utf8').split('\n');
const heading = /^#+ +(.+)$/;

/** Sentences of the text, and the first cells of its tables. */
function sentencesOf(lines: readonly string[]): readonly (readonly [heading: string, sentence: string])[] {
  let under = '';
  return lines.flatMap((line, index) => {
    under = heading.exec(line)?.[1] ?? under;
    if (heading.test(line) || line.trim() === '' || line.startsWith('|---')) return [];
    if (!line.startsWith('|')) {
      return line
        .replace(/^- /, '')
        .split(/(?<=\.)\s+/)
        .map((sentence) => [under, sentence.trim()] as const);
    }
    // The line above the dashes names the columns.
    return lines[index + 1]?.startsWith('|---') ? [] : [[under, line.split('|')[1]!.trim()] as const];
  });
}

function rowsOf(lines: readonly string[]): readonly Row[] {
  let under = '';
  return lines.flatMap((line, index) => {
    under = heading.exec(line)?.[1] ?? under;
    if (!line.startsWith('|') || line.startsWith('|---') || lines[index + 1]?.startsWith('|---')) return [];
    const [, quote = '', tests = ''] = line.split('|');
    return [{ heading: under, quote: quote.replace(/ …\s*$/, '').trim(), tests: tests.trim().split('<br>') }];
  });
}

/** The problem of a reference such as "`agent/session` › ends with", or undefined. */
function problemOf(reference: string): string | undefined {
  // Said instead of a test, or beside one.
  if (reference.startsWith('– ')) return undefined;
  const [, file, name] = /^`([\w./-]+)` › (.+)$/.exec(reference) ?? [];
  if (file === undefined || name === undefined) return `cannot be read: ${reference}`;
  const path = join(projectRoot, 'test', `${file}.test.ts`);
  if (!existsSync(path)) return `no such file: test/${file}.test.ts`;
  return readFileSync(path, 'utf8').replaceAll("\\'", "'").includes(name) ? undefined : `test/${file} has no "${name}"`;
}

describe('the map of the agent protocol', () => {
  const sentences = sentencesOf(read('docs/contract/agent-protocol.md'));
  const rows = rowsOf(read('test/agent-protocol/README.md'));

  it('has a row for every sentence of the contract, under its heading', () => {
    expect(sentences.length).toBeGreaterThan(100);
    const without = sentences.filter(
      ([under, sentence]) => !rows.some((row) => row.heading === under && sentence.startsWith(row.quote)),
    );
    expect(without).toEqual([]);
  });

  it('quotes no sentence that the contract does not have', () => {
    const unknown = rows.filter(
      (row) => !sentences.some(([under, sentence]) => row.heading === under && sentence.startsWith(row.quote)),
    );
    expect(unknown).toEqual([]);
  });

  it('names tests that exist', () => {
    expect(rows.flatMap((row) => row.tests.map(problemOf)).filter((problem) => problem !== undefined)).toEqual([]);
  });
});
