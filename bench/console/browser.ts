/**
 * Chromium for the journeys, pictures and benchmarks of the console: from the package that carries one, or Debian's. Where
 * neither runs, the journeys are skipped, and the report of the run names them.
 */
import { existsSync } from 'node:fs';
import { stderr } from 'node:process';
import packaged from '@sparticuz/chromium';
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions } from 'playwright-core';

const ofTheSystem = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const startMs = 30_000;
/** Tests run as root, in containers with a small /dev/shm. */
const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'];

/** @returns undefined, after a warning, where no browser runs */
export async function openBrowser(): Promise<Browser | undefined> {
  const reasons: string[] = [];
  for (const launch of [launchPackaged, launchOfTheSystem]) {
    try {
      return await launch();
    } catch (error) {
      reasons.push(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error));
    }
  }
  stderr.write(`\n!!!! NO BROWSER RUNS HERE, the console is not tested: ${reasons.join('; ')}\n`);
  return undefined;
}

/**
 * A browser context with English formats, like the console's texts. Without an explicit language, a browser may use
 * `en-US@posix`, which `Intl` refuses.
 */
export function openContext(browser: Browser, options: BrowserContextOptions): Promise<BrowserContext> {
  return browser.newContext({ locale: 'en-GB', timezoneId: 'UTC', ...options });
}

async function launchPackaged(): Promise<Browser> {
  const executablePath = await packaged.executablePath();
  return chromium.launch({ executablePath, args, headless: true, timeout: startMs });
}

async function launchOfTheSystem(): Promise<Browser> {
  const executablePath = ofTheSystem.find((path) => existsSync(path));
  if (executablePath === undefined) throw new Error(`none of ${ofTheSystem.join(', ')} is there`);
  return chromium.launch({ executablePath, args, headless: true, timeout: startMs });
}
