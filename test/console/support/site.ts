/**
 * The real service with its console, and Chromium to open it in: one for each file of journeys. The service runs in the
 * test's process, unless a journey kills it. Each person has a browser context of their own, like a profile.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { getCurrentTest } from 'vitest/suite';
import { openContext } from '../../../bench/console/browser.js';
import type { RestClient } from '../../../scripts/stack/rest-client.js';
import type { ServiceOptions, ServiceProcess } from '../../../scripts/stack/service.js';
import { prepareServiceHere } from '../../support/service-here.js';
import { patienceMs } from './waiting.js';

type Role = 'admin' | 'operator' | 'viewer';

type Service = Pick<ServiceProcess, 'url' | 'controlEndpoint' | 'start' | 'stop' | 'admin' | 'adminPassword'>;

export interface Site<S = Service> {
  readonly service: S;
  /** Signed in as the admin, over REST. */
  readonly admin: RestClient;
  /** Opens a page in a fresh context, which ends with the test that opens it. Its errors fail `close`. */
  open(path: string, options?: BrowserContextOptions): Promise<Page>;
  /** As `open`, signed in by cookie as the user of the role, who is named like it. */
  openAs(role: Role, path: string, options?: BrowserContextOptions): Promise<Page>;
  /** Ends the token of a page, as another tab's sign-out does. */
  endSession(page: Page): Promise<void>;
  /** Stops all. @throws Error when a page had an error, or broke its content security policy */
  close(): Promise<void>;
}

export const openSite = (browser: Browser): Promise<Site> => openSiteOf(prepareServiceHere, browser);

/** @param prepare for a service of another kind */
export async function openSiteOf<S extends Service>(
  prepare: (options: ServiceOptions) => Promise<S>,
  browser: Browser,
): Promise<Site<S>> {
  const dataDir = mkdtempSync(join(tmpdir(), 'console-'));
  const service = await prepare({ dataDir });
  await service.start();
  const errors: string[] = [];
  const admin = await service.admin();
  const password = service.adminPassword;
  for (const role of ['operator', 'viewer'] as const) {
    await admin.call('POST', '/api/auth/users', { username: role, password, role });
  }
  async function open(path: string, options: BrowserContextOptions = {}, role?: Role): Promise<Page> {
    const context = await openContext(browser, { baseURL: service.url, ...options });
    context.setDefaultTimeout(patienceMs);
    // A page that stays follows all that later tests change.
    if (getCurrentTest() !== undefined) onTestFinished(() => context.close());
    const page = await context.newPage();
    page.on('pageerror', (error) => errors.push(String(error)));
    page.on('console', (message) => {
      if (/Content Security Policy/.test(message.text())) errors.push(message.text());
    });
    if (role !== undefined) {
      const headers = { origin: service.url };
      const signedIn = await context.request.post('/api/auth/login', {
        headers,
        data: { username: role, password, cookie: true },
      });
      expect(signedIn.status()).toBe(200);
    }
    await page.goto(`/console${path}`);
    return page;
  }
  return {
    service,
    admin,
    open,
    openAs: (role, path, options) => open(path, options, role),
    async endSession(page) {
      const ended = await page.context().request.post('/api/auth/logout', { headers: { origin: service.url } });
      expect(ended.status()).toBe(200);
    },
    async close() {
      for (const context of browser.contexts()) await context.close();
      await service.stop();
      rmSync(dataDir, { recursive: true, force: true });
      expect(errors).toEqual([]);
    },
  };
}
