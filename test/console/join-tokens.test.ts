/** Adding machines in the console: a line that is shown once, and two machines that join with it (`docs/contract/joining.md`). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startProgram, type RunningProgram } from '../../scripts/stack/process.js';
import { openBrowser } from './support/browser.js';
import { expectAccessible } from './support/faults.js';
import { more } from './support/hands.js';
import { openSite, type Site } from './support/site.js';
import { addressOf, expectAbsent, expectNowhere, expectTexts, valueOf } from './support/waiting.js';

const browser = await openBrowser();

describe.skipIf(browser === undefined)('adding machines', () => {
  let site: Site;
  let folder: string;
  const agents: RunningProgram[] = [];
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'machines-'));
    site = await openSite(browser!);
  });
  afterAll(async () => {
    await Promise.all(agents.map((agent) => agent.stop()));
    rmSync(folder, { recursive: true, force: true });
    await site.close();
  });

  const joins = (token: string): void => {
    const program = startProgram('agent/main', {
      SVC_JOIN_TOKEN: token,
      SVC_CONTROL_ENDPOINT: site.service.controlEndpoint,
      SVC_AGENT_STATE_DIR: join(folder, String(agents.length)),
    });
    agents.push(program);
  };

  test('one line is shown once, the page shows each machine as it joins, connects and applies, and can be opened again', async () => {
    const page = await site.openAs('operator', '/join-tokens');
    await page.getByText('No join tokens yet').waitFor();
    await page.getByRole('link', { name: 'Add machines' }).first().click();
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('rack 7');
    await page.getByRole('textbox', { name: 'Machines', exact: true }).fill('2');
    await page.getByLabel('Name prefix').fill('edge-');
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Add machines' }).click();
    const line = await valueOf(page.getByRole('textbox', { name: 'Line to paste' }), /svcjoin1_/);
    const [token = ''] = /svcjoin1_[\w-]+/.exec(line) ?? [];
    await page.getByText('Waiting for the first machine').waitFor();
    await expectAccessible(page);

    joins(token);
    await page.getByRole('row').filter({ hasText: 'edge-' }).getByText('connected, ').waitFor();
    await page.getByText('1 of 2 machines joined').waitFor();
    joins(token);
    await page.getByText('2 of 2 machines joined').waitFor();

    await page.getByRole('button', { name: 'I have saved it' }).click();
    const address = await addressOf(page, /\/join-tokens\/[\w-]+$/);
    await expectTexts(page.getByRole('row').filter({ hasText: 'edge-' })).toEqual([
      expect.stringContaining('connected'),
      expect.stringContaining('connected'),
    ]);
    await expectNowhere(page, token);
    const viewer = await site.openAs('viewer', address);
    await viewer.getByText('2 of 2 machines joined').waitFor();
    await viewer.getByRole('button', { name: 'More actions' }).click();
    await viewer.getByRole('menuitem', { name: 'History' }).waitFor();
    await expectAbsent(viewer, viewer.getByRole('menuitem', { name: 'Delete' }));

    await more(page, 'Delete');
    await page.getByText(/Nodes that have joined stay/).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No join tokens yet').waitFor();
  });
});
