/** The repository has only those pictures of the console that a document shows: all others are made on demand. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from '../support/project-root.js';

test('docs/console holds the pictures that its page shows, and no others', () => {
  const folder = join(projectRoot, 'docs/console');
  const page = readFileSync(join(folder, 'README.md'), 'utf8');
  const shown = [...page.matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)].map(([, path]) => path);
  const held = readdirSync(folder).filter((name) => name !== 'README.md');
  expect(held.toSorted()).toEqual(shown.toSorted());
});
