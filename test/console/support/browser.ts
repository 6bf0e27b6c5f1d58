/** The browser of the journeys: one for all files of a worker, which ends with the worker. */
import type { Browser } from 'playwright-core';
import { openBrowser as launch } from '../../../bench/console/browser.js';

let launched: Promise<Browser | undefined> | undefined;

/** @returns undefined where no browser runs */
export function openBrowser(): Promise<Browser | undefined> {
  launched ??= launch();
  return launched;
}
