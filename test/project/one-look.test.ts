/** `npm run lint` refuses code in a journey through the console that looks at the page once where it should wait. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { projectRoot } from '../support/project-root.js';

const folder = mkdtempSync(join(tmpdir(), 'one-look-'));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The lint's complaints about one line in a file, without their place. */
function complaints(path: string, line: string): readonly string[] {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  copyFileSync(join(projectRoot, '.oxlintrc.json'), join(folder, '.oxlintrc.json'));
  writeFileSync(file, `import type { Page } from 'playwright-core';\nexport const look = (page: Page) => ${line};\n`);
  const { stdout } = spawnSync(join(projectRoot, 'node_modules/.bin/oxlint'), ['-f', 'unix'], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 60_000,
  });
  return stdout.split('\n').filter((found) => found.includes(path));
}

describe('lint', () => {
  it.each([
    `page.getByRole('row').count()`,
    `page.locator('h1').innerText()`,
    `page.locator('h1').nth(1).boundingBox()`,
    `page.getByLabel('Name').inputValue()`,
    `page.locator('tr').all()`,
    `page.url()`,
    `page.content()`,
    `page.evaluate('document.title')`,
    `page.waitForFunction('document.title')`,
    `page.waitForTimeout(100)`,
  ])('refuses a journey %s', (line) => {
    expect(complaints('test/console/planted.test.ts', line)).toEqual([expect.stringContaining('no-restricted')]);
  });

  it('lets what a journey waits with look, and anybody gather promises', () => {
    expect(complaints('test/console/support/planted.ts', `page.getByRole('row').count()`)).toEqual([]);
    expect(
      complaints(
        'test/console/planted.test.ts',
        `Promise.all([1, 2].map((place) => page.locator('h1').nth(place).waitFor()))`,
      ),
    ).toEqual([]);
  });

  it('refuses everybody waitForFunction, whose second look the policy of the page refuses', () => {
    for (const path of ['test/console/support/planted.ts', 'bench/console/planted.ts']) {
      expect(complaints(path, `page.waitForFunction('document.title')`)).toEqual([
        expect.stringContaining('waitForFunction'),
      ]);
    }
  });
});
