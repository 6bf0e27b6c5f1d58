/** The page `/docs` (`docs/contract/rest.md#beside-api`) in a browser: it shows the document, and asks nobody else for anything. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openBrowser } from './support/browser.js';
import { openSite, type Site } from './support/site.js';

const browser = await openBrowser();

describe.skipIf(browser === undefined)('the page of the API', () => {
  let site: Site;
  beforeAll(async () => {
    site = await openSite(browser!);
  });
  // A breach of the content security policy fails it.
  afterAll(async () => {
    await site.close();
  });

  test('lists every tag, and an operation with its parameters; somebody who is signed in can try it', async () => {
    const page = await site.openAs('admin', '/');
    const answered: string[] = [];
    page.on('response', (response) => answered.push(new URL(response.url()).origin));
    await page.goto('/docs#/nodes/listNodes');
    const document = await page.request.get('/openapi.json');
    const { tags } = (await document.json()) as { tags: { name: string }[] };
    for (const { name } of tags) await page.locator(`.opblock-tag[data-tag="${name}"]`).waitFor();
    const operation = page.locator('#operations-nodes-listNodes');
    await operation.getByText('page_size').first().waitFor();
    await operation.getByRole('button', { name: 'Try it out' }).click();
    await operation.getByRole('button', { name: 'Execute' }).click();
    await operation.locator('.live-responses-table .response-col_status').filter({ hasText: '200' }).first().waitFor();
    expect(new Set(answered).size).toBe(1);
  });
});
