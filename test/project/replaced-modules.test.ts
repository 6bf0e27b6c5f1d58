/**
 * A test that replaces a module has a process of its own: in a shared one, another file may have loaded the module before,
 * and the replacement is then silently not used.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { projectRoot } from '../support/project-root.js';

it('each test file that replaces a module is listed as one that runs alone', () => {
  const config = readFileSync(join(projectRoot, 'vitest.config.ts'), 'utf8');
  const alone = config.slice(config.indexOf('const alone'), config.indexOf('];'));
  const files = readdirSync(join(projectRoot, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts') && !file.includes('node_modules'))
    .map((file) => `test/${file.replaceAll('\\', '/')}`);
  const replacing = files.filter((file) => /^vi\.(mock|doMock)\(/m.test(readFileSync(join(projectRoot, file), 'utf8')));
  expect(replacing.length).toBeGreaterThan(0);
  expect(replacing.filter((file) => !alone.includes(`'${file}'`))).toEqual([]);
});
