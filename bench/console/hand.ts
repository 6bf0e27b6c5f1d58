/** A person's hand on a page: clicks, and texts typed into fields, are counted. */
import type { Locator, Page } from 'playwright-core';

export interface Hand {
  readonly page: Page;
  click(what: Locator): Promise<void>;
  /** Counts as a click into the field, unless it has the focus already, and as one text. */
  type(what: Locator, text: string): Promise<void>;
  /** Opens the list of a field, and takes an option: two clicks. */
  pick(field: Locator, option: string): Promise<void>;
  counts(): { readonly clicks: number; readonly texts: number };
}

/** What this needs of an element of the page, for which Node has no types. */
interface Element {
  matches(selector: string): boolean;
}

export function handOn(page: Page): Hand {
  let [clicks, texts] = [0, 0];
  const click = async (what: Locator): Promise<void> => {
    await what.click();
    clicks += 1;
  };
  return {
    page,
    click,
    async type(what, text) {
      await what.waitFor();
      if (!(await what.evaluate((element) => (element as unknown as Element).matches(':focus')))) clicks += 1;
      await what.fill(text);
      texts += 1;
    },
    async pick(field, option) {
      await click(field);
      await click(page.getByRole('option', { name: option, exact: true }));
    },
    counts: () => ({ clicks, texts }),
  };
}
