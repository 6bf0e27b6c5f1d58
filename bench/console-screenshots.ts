/**
 * Pictures of every page of the console, of a fleet of 3 nodes and one of 500: light and dark, wide and as narrow as a
 * phone. In `docs/console/`, for a person to look at; the overview is shown in the README.
 *
 *   npm run console:screenshots -- [ROUTE…]
 */
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { openBrowser } from './console/browser.js';
import { fillFleet } from './console/fleet.js';
import { consolePages, openSignedIn, settled, visit } from './console/pages.js';
import { prepareService } from '../scripts/stack/service.js';

const folder = 'docs/console';
/** Of the larger fleet there are half of the pictures: wide in light, narrow in dark. */
const many = 500;
const fleets = [3, many] as const;
const windows = { wide: { width: 1280, height: 800 }, narrow: { width: 360, height: 740 } } as const;
const schemes = ['light', 'dark'] as const;
/** Higher pages are cut. */
const maxHeight = 1_400;
/** Figures come with heartbeats, every two seconds. */
const settleMs = 5_000;

async function main(wanted: readonly string[]): Promise<void> {
  const browser = await openBrowser();
  if (browser === undefined) throw new Error('no browser runs here');
  try {
    mkdirSync(folder, { recursive: true });
    for (const nodes of fleets) await pictures(browser, nodes, wanted);
  } finally {
    await browser.close();
  }
}

async function pictures(browser: Browser, nodes: number, wanted: readonly string[]): Promise<void> {
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
      await page.waitForTimeout(settleMs);
      for (const { route, address } of await consolePages(page)) {
        if (wanted.length > 0 && !wanted.includes(route)) continue;
        await visit(page, address);
        for (const [window, size] of Object.entries(windows)) {
          for (const scheme of schemes) {
            if (nodes === many && (window === 'wide') !== (scheme === 'light')) continue;
            await page.setViewportSize(size);
            await page.emulateMedia({ colorScheme: scheme });
            await settled(page);
            writeFileSync(join(folder, `${nameOf(route)}-${nodes}-${window}-${scheme}.webp`), await picture(page));
          }
        }
      }
    } finally {
      await fleet.close();
    }
  } finally {
    await service.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** `/nodes/$id` is `nodes-id`. */
const nameOf = (route: string): string => route.replaceAll('$', '').split('/').filter(Boolean).join('-') || 'overview';

/** As WebP, which pictures of text need a third of PNG for. */
async function picture(page: Page): Promise<Buffer> {
  const { width = 0 } = page.viewportSize() ?? {};
  const height = await page.evaluate<number>('document.documentElement.scrollHeight');
  const client = await page.context().newCDPSession(page);
  const { data } = await client.send('Page.captureScreenshot', {
    format: 'webp',
    quality: 25,
    captureBeyondViewport: true,
    clip: { x: 0, y: 0, width, height: Math.min(height, maxHeight), scale: 1 },
  });
  await client.detach();
  return Buffer.from(data, 'base64');
}

await main(process.argv.slice(2));
