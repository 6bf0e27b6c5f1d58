/**
 * Takes the pictures of `docs/console/README.md`, with a fleet of 3 nodes and one of 500.
 *
 *   npm run console:screenshots [-- ROUTE…]
 *
 * Given routes (`/nodes/$id`), takes pictures of those pages instead, into `dist/console-pictures/`: of both fleets, light and
 * dark, wide and phone-sized.
 */
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stdout } from 'node:process';
import type { Browser, Page } from 'playwright-core';
import { openBrowser } from './console/browser.js';
import { fillFleet } from './console/fleet.js';
import { consolePages, openSignedIn, settled, visit } from './console/pages.js';
import { showInventedPast } from './console/past.js';
import { prepareService } from '../scripts/stack/service.js';

const windows = { wide: { width: 1280, height: 800 }, narrow: { width: 360, height: 740 } } as const;
const schemes = ['light', 'dark'] as const;
const fleets = [3, 500] as const;

interface Picture {
  readonly route: string;
  /** How many nodes its fleet has. */
  readonly nodes: (typeof fleets)[number];
  readonly window: keyof typeof windows;
  readonly scheme: (typeof schemes)[number];
}

const shown: readonly Picture[] = [
  { route: '/', nodes: 500, window: 'wide', scheme: 'light' },
  { route: '/nodes', nodes: 500, window: 'wide', scheme: 'light' },
  { route: '/nodes/$id', nodes: 3, window: 'wide', scheme: 'light' },
  { route: '/nodes/$id', nodes: 3, window: 'narrow', scheme: 'dark' },
  { route: '/nodes/$id/config', nodes: 3, window: 'wide', scheme: 'light' },
  { route: '/chains/$id', nodes: 3, window: 'wide', scheme: 'light' },
  { route: '/chains/$id/edit', nodes: 3, window: 'wide', scheme: 'light' },
  { route: '/topology', nodes: 3, window: 'wide', scheme: 'light' },
  { route: '/ports', nodes: 3, window: 'wide', scheme: 'light' },
  { route: '/audit', nodes: 3, window: 'wide', scheme: 'dark' },
  { route: '/fleet-file/sets/$set', nodes: 3, window: 'wide', scheme: 'light' },
  { route: '/webhooks/$id', nodes: 3, window: 'wide', scheme: 'light' },
];

/** Higher pages are cut. */
const maxHeight = 1_400;
/** Figures come with heartbeats, every two seconds. */
const settleMs = 5_000;

async function main(routes: readonly string[]): Promise<void> {
  const [folder, pictures] = routes.length === 0 ? ['docs/console', shown] : ['dist/console-pictures', allOf(routes)];
  const browser = await openBrowser();
  if (browser === undefined) throw new Error('no browser runs here');
  try {
    mkdirSync(folder, { recursive: true });
    for (const nodes of fleets) {
      const some = pictures.filter((one) => one.nodes === nodes);
      if (some.length > 0) await take(browser, nodes, some, folder);
    }
  } finally {
    await browser.close();
  }
}

function allOf(routes: readonly string[]): readonly Picture[] {
  const looks = (['wide', 'narrow'] as const).flatMap((window) => schemes.map((scheme) => ({ window, scheme })));
  return routes.flatMap((route) => fleets.flatMap((nodes) => looks.map((look) => ({ route, nodes, ...look }))));
}

async function take(browser: Browser, nodes: number, pictures: readonly Picture[], folder: string): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'console-pictures-'));
  const service = await prepareService({ dataDir, env: { SVC_LOG_LEVEL: 'warn' } });
  try {
    await service.start();
    const fleet = await fillFleet({ rest: await service.admin(), controlEndpoint: service.controlEndpoint, nodes });
    try {
      const page = await openSignedIn(browser, {
        url: service.url,
        username: 'admin',
        password: service.adminPassword,
      });
      await showInventedPast(page);
      await page.waitForTimeout(settleMs);
      const addresses = await addressesOf(page, pictures, fleet.chain);
      for (const { route, window, scheme } of pictures) {
        const address = addresses.get(route) ?? route;
        await page.setViewportSize(windows[window]);
        await page.emulateMedia({ colorScheme: scheme });
        await visit(page, address);
        const path = join(folder, `${nameOf(route)}-${nodes}-${window}-${scheme}.webp`);
        writeFileSync(path, await picture(page));
        stdout.write(`${path}\n`);
      }
    } finally {
      await fleet.close();
    }
  } finally {
    await service.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Finds the addresses of routes about one resource. @throws Error when there is no such route */
async function addressesOf(
  page: Page,
  pictures: readonly Picture[],
  chain: string,
): Promise<ReadonlyMap<string, string>> {
  const routes = pictures.map(({ route }) => route).filter((route) => route.includes('$'));
  if (routes.length === 0) return new Map();
  const found = new Map((await consolePages(page)).map(({ route, address }) => [route, address]));
  const unknown = routes.find((route) => !found.has(route));
  if (unknown !== undefined) throw new Error(`${unknown}: expected one of ${[...found.keys()].join(', ')}`);
  // The others were never deployed.
  return new Map([...found, ['/chains/$id', `/chains/${chain}`], ['/chains/$id/edit', `/chains/${chain}/edit`]]);
}

/** `/nodes/$id` is `nodes-id`. */
const nameOf = (route: string): string => route.replaceAll('$', '').split('/').filter(Boolean).join('-') || 'overview';

/** As WebP, which takes a third of PNG for text. @throws Error when a plot on the page could not be drawn */
async function picture(page: Page): Promise<Buffer> {
  await settled(page);
  if ((await page.getByText('could not be drawn').count()) > 0) throw new Error(`${page.url()} lacks its plots`);
  const { width = 0 } = page.viewportSize() ?? {};
  const height = await page.evaluate<number>('document.documentElement.scrollHeight');
  const client = await page.context().newCDPSession(page);
  const { data } = await client.send('Page.captureScreenshot', {
    format: 'webp',
    quality: 50,
    captureBeyondViewport: true,
    clip: { x: 0, y: 0, width, height: Math.min(height, maxHeight), scale: 1 },
  });
  await client.detach();
  return Buffer.from(data, 'base64');
}

await main(process.argv.slice(2));
