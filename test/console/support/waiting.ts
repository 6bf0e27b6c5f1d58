/**
 * Assertions about a page that wait until they hold: a page follows its data, so what one look finds depends on luck. Tests
 * use these and `waitFor`; lint refuses them the readers of Playwright, which look once (`.oxlintrc.json`).
 */
import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { settled } from '../../../bench/console/pages.js';

/** For a browser, a service and agents on a busy machine. */
export const patienceMs = 30_000;

/** To be awaited with a matcher: `await expectCount(rows).toBe(3)`. */
type Waiting<T> = ReturnType<typeof expect.poll<T>>;

const until = <T>(read: () => T): Waiting<T> => expect.poll(read, { timeout: patienceMs });

export const expectCount = (what: Locator): Waiting<Promise<number>> => until(() => what.count());

/** The words of one element. */
export const expectText = (what: Locator): Waiting<Promise<string>> => until(() => what.innerText());

/** The words of each of several. */
export const expectTexts = (what: Locator): Waiting<Promise<string[]>> => until(() => what.allInnerTexts());

export const expectValue = (what: Locator): Waiting<Promise<string>> => until(() => what.inputValue());

export const expectAttribute = (what: Locator, name: string): Waiting<Promise<string | null>> =>
  until(() => what.getAttribute(name));

export const expectDisabled = (what: Locator): Waiting<Promise<boolean>> => until(() => what.isDisabled());

/** The path, within its form, of the field that has the focus: `hops.0.listen_port`. */
export const expectFocus = (page: Page): Waiting<Promise<unknown>> =>
  until(() => page.evaluate('document.activeElement.dataset.path'));

export const expectOpacity = (page: Page, selector: string): Waiting<Promise<number>> =>
  until(() => page.evaluate<number>(`Number(getComputedStyle(document.querySelector('${selector}')).opacity)`));

/** The query of the address: `?q=exit`. */
export const expectSearch = (page: Page): Waiting<string> => until(() => new URL(page.url()).search);

/** All that a browser holds for the page's site. */
export const expectCookies = (page: Page): Waiting<Promise<object[]>> => until(() => page.context().cookies());

/** Each begins further right than the one before. */
export async function expectLeftToRight(all: readonly Locator[]): Promise<void> {
  await until(async () => {
    const begins = await Promise.all(all.map(async (one) => (await one.boundingBox())?.x ?? Number.NaN));
    return begins.slice(1).every((begin, index) => begin > begins[index]!);
  }).toBe(true);
}

/** None of these is on the page once it loads nothing more. Wait for the page first: before it comes, this proves nothing. */
export async function expectAbsent(page: Page, ...all: readonly Locator[]): Promise<void> {
  await settled(page);
  for (const one of all) await until(async () => ((await one.count()) === 0 ? '' : String(one))).toBe('');
}

/** Watches what the page says from now on. @returns fails if these words ever stood there, however shortly */
export async function watchForNever(page: Page, words: string): Promise<() => Promise<void>> {
  await page.evaluate(`(() => {
    window.wasSaid = false;
    const look = () => { window.wasSaid ||= document.body.textContent.includes(${JSON.stringify(words)}); };
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
  })()`);
  return async () => expect(await page.evaluate('window.wasSaid')).toBe(false);
}

/** Neither the page nor what its scripts can read of the browser holds the secret. */
export async function expectNowhere(page: Page, secret: string): Promise<void> {
  await settled(page);
  const held = `JSON.stringify([
    location.href, document.cookie, { ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML,
    [...document.querySelectorAll('input, textarea')].map(({ value }) => value),
  ])`;
  await until(() => page.evaluate<string>(held)).not.toContain(secret);
}

/** The value of a field, to go on with, once it is as expected. */
export async function valueOf(what: Locator, expected: RegExp): Promise<string> {
  await expectValue(what).toMatch(expected);
  return what.inputValue();
}

/** The address below `/console`, to go on with, once it is as expected. */
export async function addressOf(page: Page, expected: RegExp): Promise<string> {
  await page.waitForURL(expected);
  const { pathname, search } = new URL(page.url());
  return pathname.replace('/console', '') + search;
}

/** What this needs of a DOM element, for which Node has no types. */
interface Canvas {
  readonly width: number;
  readonly height: number;
  getContext(kind: '2d'): {
    getImageData(x: number, y: number, w: number, h: number): { readonly data: ArrayLike<number> };
  };
}

/** How many pixels of a canvas have this colour, `#rrggbb`: those on the edge of a line let some of the page through. */
export const expectPixels = (canvas: Locator, colour: string): Waiting<Promise<number>> =>
  until(() =>
    canvas.evaluate(
      (element: Canvas, rgb) => {
        const { data } = element.getContext('2d').getImageData(0, 0, element.width, element.height);
        let found = 0;
        for (let at = 0; at < data.length; at += 4) {
          if (data[at + 3]! < 96) continue;
          if (rgb.every((value, index) => Math.abs(value - data[at + index]!) <= 4)) found += 1;
        }
        return found;
      },
      [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)),
    ),
  );

/** The controls of the page that a notice covers once one has scrolled to its end. */
export const expectCovered = (page: Page): Waiting<Promise<string[]>> =>
  until(() =>
    page.evaluate<string[]>(`(() => {
      scrollTo(0, document.body.scrollHeight);
      const controls = [...document.querySelectorAll('main :is(a, button, input, textarea)')];
      const covers = (control) => {
        const { left, top, width, height } = control.getBoundingClientRect();
        return document.elementFromPoint(left + width / 2, top + height / 2)?.closest('.mantine-Notification-root');
      };
      return controls.filter(covers).map(({ outerHTML }) => outerHTML.slice(0, 120));
    })()`),
  );

/** In pixels. */
export const expectHeight = (what: Locator): Waiting<Promise<number | undefined>> =>
  until(async () => (await what.boundingBox())?.height);

/** Whether the words of an element are wider than it. */
export const expectCut = (what: Locator): Waiting<Promise<boolean>> =>
  until(() => what.evaluate((element: Measured) => element.scrollWidth > element.clientWidth));

interface Measured {
  readonly scrollWidth: number;
  readonly clientWidth: number;
}
