/**
 * All pages of the console, read from its router, so that new pages are included. The addresses of pages about one resource
 * come from the links of other pages.
 */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { eventually } from '../../scripts/stack/process.js';
import { openContext } from './browser.js';

export interface ConsolePage {
  /** The router's pattern, such as `/nodes/$id`. */
  readonly route: string;
  /** Below `/console`. */
  readonly address: string;
}

interface SignIn {
  readonly url: string;
  readonly username: string;
  readonly password: string;
}

/** Opens the overview in a context of its own, signed in by cookie. @throws Error when the service refuses */
export async function openSignedIn(
  browser: Browser,
  { url, username, password }: SignIn,
  options: BrowserContextOptions = {},
): Promise<Page> {
  const context = await openContext(browser, { baseURL: url, reducedMotion: 'reduce', ...options });
  const data = { username, password, cookie: true };
  const signedIn = await context.request.post('/api/auth/login', { headers: { origin: url }, data });
  if (signedIn.status() !== 200) throw new Error(`signing in as ${username} answered ${signedIn.status()}`);
  const page = await context.newPage();
  await page.goto('/console/');
  return page;
}

/** Opens an address of the console and waits until its content shows. */
export async function visit(page: Page, address: string): Promise<void> {
  await page.goto(`/console${address}`);
  await settled(page);
}

/** Goes on to another address as a link does: what the browser has loaded stays. @internal exported for tests */
export async function goTo(page: Page, address: string): Promise<void> {
  await leadTo(page, address);
  await settled(page);
}

/** The same, without waiting for what the page loads. @internal exported for tests */
export async function leadTo(page: Page, address: string): Promise<void> {
  // The promise of a navigation that another one overtakes may never settle.
  await page.evaluate(`Promise.race([
    self.__TSR_ROUTER__.navigate({ to: ${JSON.stringify(address)} }),
    new Promise((resolve) => setTimeout(resolve, 1_000)),
  ])`);
  const isThere = `(() => {
    const { status, location, resolvedLocation } = self.__TSR_ROUTER__.state;
    return status === 'idle' && resolvedLocation?.href === location.href;
  })()`;
  await eventually(`the page of ${address} is there`, async () => (await page.evaluate<boolean>(isThere)) || undefined);
}

/** Waits until a page shows its heading or an error, and has finished loading. */
export async function settled(page: Page): Promise<void> {
  await page.locator('h1, .mantine-Alert-root').first().waitFor();
  const loading = '[aria-busy=true], .mantine-Skeleton-root, .mantine-Loader-root, .mantine-LoadingOverlay-root';
  await page.locator(loading).first().waitFor({ state: 'detached' });
}

/** How many pages are searched for links. */
const visitsMax = 200;

/**
 * All pages; those about one resource with an address that another page links to.
 * @throws Error naming routes that no page links to
 */
export async function consolePages(page: Page): Promise<readonly ConsolePage[]> {
  await settled(page);
  const all = await page.evaluate<string[]>('Object.keys(self.__TSR_ROUTER__.routesByPath)');
  const routes = all.filter((route) => !all.includes(`${route}/`) || route === '/');
  const found = new Map(routes.filter((route) => !route.includes('$')).map((route) => [route, route]));
  const open = new Set(routes.filter((route) => !found.has(route)));
  const routeOf = (address: string): string | undefined =>
    routes.find((route) => route === address) ?? routes.find((route) => patternOf(route).test(address));
  // New pages first, then others of the same kind, because not every resource has all links.
  const waiting = [...found.values()];
  const others: string[] = [];
  const seen = new Set(waiting);
  for (let visits = 0; open.size > 0 && visits < visitsMax; visits += 1) {
    const address = waiting.shift() ?? others.shift();
    if (address === undefined) break;
    await goTo(page, address);
    for (const link of await linksOf(page)) {
      const route = routeOf(link);
      if (route === undefined || seen.has(link)) continue;
      seen.add(link);
      if (open.delete(route)) {
        found.set(route, link);
        waiting.push(link);
      } else others.push(link);
    }
  }
  if (open.size > 0) throw new Error(`no page links to ${[...open].join(', ')}`);
  return [...found].map(([route, address]) => ({ route, address }));
}

const patternOf = (route: string): RegExp => new RegExp(`^${route.replaceAll(/\$\w+/g, '[^/]+')}$`);

/** The addresses below `/console` that a page links to. */
async function linksOf(page: Page): Promise<readonly string[]> {
  const links = await page.evaluate<string[]>('[...document.links].map(({ pathname }) => pathname)');
  return links.filter((link) => link.startsWith('/console/')).map((link) => link.slice('/console'.length));
}
