/** What is wrong with the look of a page: what axe calls serious, and what does not fit into the window. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { settled } from '../../../bench/console/pages.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** A dialog that fades in has too little contrast for a moment, and a layout follows its window: faults are what stays. */
const looks = 20;
const lookEveryMs = 150;

/** Waits until the page loads nothing more and has no fault that axe calls serious. */
export async function expectAccessible(page: Page): Promise<void> {
  expect(await lastingFaults(page, () => seriousFaults(page))).toEqual([]);
}

/**
 * All faults of a page that loads nothing more.
 * @param rules only these of axe's rules; all when absent
 */
export function faultsOf(page: Page, rules?: readonly string[]): Promise<readonly string[]> {
  return lastingFaults(page, async () => [...(await tooWide(page)), ...(await seriousFaults(page, rules))]);
}

async function lastingFaults(page: Page, look: () => Promise<readonly string[]>): Promise<readonly string[]> {
  let found: readonly string[] = [];
  for (let turn = 0; turn < looks; turn += 1) {
    await settled(page);
    found = await look();
    if (found.length === 0) return [];
    await delay(lookEveryMs);
  }
  return found;
}

/** What axe calls serious or worse. */
async function seriousFaults(page: Page, rules?: readonly string[]): Promise<readonly string[]> {
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(axe);
  // Content outside all landmarks is only a moderate fault, and takes as long to find as everything serious.
  const which = rules === undefined ? { rules: { region: { enabled: false } } } : { runOnly: rules };
  const options = JSON.stringify({ resultTypes: ['violations'], ...which });
  type Found = { id: string; impact: string; nodes: { html: string }[] }[];
  const violations = await page.evaluate<Found>(`axe.run(document, ${options}).then(({ violations }) => violations)`);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}

/** The element that makes the page wider than its window. */
function tooWide(page: Page): Promise<readonly string[]> {
  return page.evaluate<string[]>(`(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return [];
    const widest = [...document.querySelectorAll('body *')].findLast((one) => one.getBoundingClientRect().right >= scrollWidth);
    return [scrollWidth + ' pixels wide in a window of ' + clientWidth + ': ' + (widest?.outerHTML ?? '').slice(0, 200)];
  })()`);
}
