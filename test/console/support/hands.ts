/** What journeys do with a page beyond a click or a key. */
import type { Locator, Page } from 'playwright-core';
import { settled, visit } from '../../../bench/console/pages.js';

/** Drops a text on an element, as a file. */
export async function dropFile(where: Locator, name: string, text: string): Promise<void> {
  const data = await where.page().evaluateHandle(`(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([${JSON.stringify(text)}], ${JSON.stringify(name)}, { type: 'application/yaml' }));
    return transfer;
  })()`);
  await where.dispatchEvent('drop', { dataTransfer: data });
}

/** Chooses an item of the page's "⋯" menu. */
export async function more(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('menuitem', { name }).click();
}

/**
 * Presses each button of the page at an address, and of the dialogs that they open, whose words no page before had. What a
 * calendar has below its field is not pressed: it has a button for each month and year.
 * @param pressed the words of all buttons so far; grows
 */
export async function pressAll(page: Page, address: string, pressed: Set<string>): Promise<void> {
  for (;;) {
    const buttons = page.locator(
      ':is(main, [role=dialog]) button:visible:enabled:not(.mantine-DateTimePicker-levelsGroup *)',
    );
    const words = await buttons.allInnerTexts();
    const next = words.findIndex((word) => word.trim() !== '' && !pressed.has(word));
    if (next < 0) return;
    const word = words[next] ?? '';
    pressed.add(word);
    await buttons
      .nth(next)
      .click({ timeout: 2_000 })
      .catch(() => undefined);
    await settled(page);
    if (!page.url().endsWith(address) && (await page.locator('[role=dialog]:visible').count()) === 0) {
      await visit(page, address);
    }
  }
}

/** What this needs of a DOM element, for which Node has no types. */
interface Element {
  matches(selector: string): boolean;
}

/** More stops than any page has before the element. */
const mostTabs = 120;

/** Tabs on until the element has the focus. @throws Error when it is not reached */
export async function tabTo(page: Page, what: Locator): Promise<void> {
  await what.waitFor();
  for (let stops = 0; stops < mostTabs; stops += 1) {
    if (await what.evaluate((element) => (element as unknown as Element).matches(':focus'))) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`${String(what)} is not reached by ${mostTabs} tabs`);
}
