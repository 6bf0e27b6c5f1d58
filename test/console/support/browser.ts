/** The browser of the journeys: one for all files of a worker, which ends with the worker. */
import type { Browser } from 'playwright-core';
import { openBrowser as launch } from '../../../bench/console/browser.js';

let launched: Promise<Browser | undefined> | undefined;

/** Another one if the last one has crashed. @returns undefined where no browser runs */
export async function openBrowser(): Promise<Browser | undefined> {
  if ((await launched)?.isConnected() === false) launched = undefined;
  return (launched ??= launch());
}
