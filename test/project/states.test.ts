/** The catalogue of states is the only one: no page of the console has moods of its own for what the API tells. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from '../support/project-root.js';

test('moods by state stand in shared/ui/states.ts alone', () => {
  const sources = join(projectRoot, 'console/src');
  const files = readdirSync(sources, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file));
  const others = files.filter((file) => /Record<[^=]*, Mood>/.test(readFileSync(join(sources, file), 'utf8')));
  // What a plan does is no state.
  expect(others).toEqual(['fleet-file/plan-view.tsx']);
});
