/**
 * The console in Chromium with 10,000 nodes: the overview's answer and page, the list's first row, its rows in the document,
 * the longest task while it scrolls and turns pages, how soon a change by somebody else shows, and compressed sizes; what an idle
 * tab asks for, the topology of 300, 500 and 10,000 nodes, and how many clicks and seconds journeys take.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { openBrowser } from './console/browser.js';
import { journeys } from './console/journeys.js';
import { openSignedIn } from './console/pages.js';
import { openRelay } from './console/relay.js';
import { atRest, growFleet, topologyFigures } from './console/traffic.js';
import { startChild, type Child } from './child.js';
import { rounded, spread, type Figure, type Report } from './figures.js';
import type { BenchOptions } from './options.js';
import type { StartAgents } from './processes/agents.js';
import { password, withService, type BenchService } from './stack.js';

const built = join('dist', 'console');
/** Steps of the mouse wheel over the list. */
const scrolls = 40;
const pagesTurned = 10;
const connectWithinMs = 300_000;
/** How long a page at rest is watched in a quick run. */
const quickMs = 5_000;

export async function consoleBench(options: BenchOptions): Promise<Report> {
  const browser = await openBrowser();
  if (browser === undefined) throw new Error('no browser runs here');
  try {
    const figures = await withService({}, (service) => fleetFigures(service, browser, options));
    return {
      bench: 'console',
      figures: { ...figures, compressed_kib: sizes(), journeys: await journeys(browser) },
    };
  } finally {
    await browser.close();
  }
}

/** The fleet grows while the topology is looked at. */
async function fleetFigures(
  service: BenchService,
  browser: Browser,
  options: BenchOptions,
): Promise<Record<string, Figure>> {
  const steps = options.quick ? [30, 100, 500] : [300, 500, 10_000];
  const agents = options.agents ?? (options.quick ? 100 : 1_000);
  const [rounds, restMs] = options.quick ? [10, quickMs] : [100, undefined];
  const relay = await openRelay(service.process.url);
  const children: Child[] = [];
  try {
    const page = await openSignedIn(browser, { url: relay.url, username: 'admin', password }, { viewport: window });
    const topology: Record<string, Figure> = {};
    let [nodes, connected, first] = [0, 0, ''];
    for (const size of steps) {
      const made = await growFleet(service, nodes, size);
      const start = made.slice(0, agents - connected);
      if (start.length > 0) children.push(await connect(service, start));
      [nodes, connected, first] = [size, connected + start.length, first || (made[0]?.nodeId ?? '')];
      topology[`of_${size}`] = await topologyFigures(page, relay, restMs);
    }
    const overview = await overviewFigures(service, page, rounds);
    return {
      nodes,
      agents: connected,
      overview: { ...overview, at_rest: await atRest(page, relay, restMs) },
      list: await listFigures(page, nodes),
      topology,
      ms_from_a_change_to_the_page: { ...(await changeMs(service, page, first, rounds)) },
    };
  } finally {
    for (const child of children) await child.close();
    relay.close();
  }
}

async function connect(service: BenchService, agents: StartAgents['agents']): Promise<Child> {
  const child = startChild('processes/agents');
  const { hostname, port } = new URL(service.process.controlEndpoint);
  const start = { host: hostname, port: Number(port), agents } satisfies StartAgents;
  await child.ask('start', start, connectWithinMs);
  while ((await child.ask<number>('configured')) < agents.length) await delay(200);
  return child;
}

const window = { width: 1280, height: 800 };

async function overviewFigures({ admin }: BenchService, page: Page, rounds: number): Promise<Record<string, Figure>> {
  const answers: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const began = performance.now();
    await admin.call('GET', '/api/dashboard/stats');
    answers.push(performance.now() - began);
  }
  const shown: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const began = performance.now();
    await page.goto('/console/');
    await page.getByText('Nodes online').waitFor();
    shown.push(performance.now() - began);
  }
  return { answer_ms: { ...spread(answers) }, page_ms: { ...spread(shown) } };
}

async function listFigures(page: Page, nodes: number): Promise<Record<string, Figure>> {
  const began = performance.now();
  await page.goto('/console/nodes');
  await page.locator('tbody tr').first().waitFor();
  const firstRowMs = performance.now() - began;
  await page.evaluate(`
    self.tasks = [];
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration)))
      .observe({ type: 'longtask' });
  `);
  const rows: number[] = [];
  const [scrolling, turning]: [number[], number[]] = [[], []];
  /** Long tasks since the last call; the browser reports one a moment after it. */
  const longTasks = async (): Promise<readonly number[]> => {
    await delay(200);
    return page.evaluate<number[]>('self.tasks.splice(0)');
  };
  await page.mouse.move(window.width / 2, window.height / 2);
  for (let turn = 0; turn < pagesTurned; turn += 1) {
    for (let step = 0; step < scrolls / 2; step += 1) await page.mouse.wheel(0, 200);
    rows.push(await page.locator('tr').count());
    scrolling.push(...(await longTasks()));
    if ((turn + 1) * 50 < nodes) {
      await page.getByRole('button', { name: 'Next page' }).click();
      await page.waitForURL(new RegExp(`page=${turn + 2}\\b`));
      await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
      turning.push(...(await longTasks()));
    }
    for (let step = 0; step < scrolls / 2; step += 1) await page.mouse.wheel(0, -200);
  }
  scrolling.push(...(await longTasks()));
  return {
    first_row_ms: rounded(firstRowMs),
    rows_in_the_document: Math.max(...rows),
    scrolling: { tasks_over_50_ms: scrolling.length, longest_task_ms: Math.max(0, ...scrolling) },
    turning_pages: { tasks_over_50_ms: turning.length, longest_task_ms: Math.max(0, ...turning) },
  };
}

/** Somebody else renames a node of the open list. */
async function changeMs({ admin }: BenchService, page: Page, nodeId: string, rounds: number) {
  await page.goto('/console/nodes?q=changes');
  const taken: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const name = `changes-${round}`;
    const began = performance.now();
    await admin.call('PUT', `/api/nodes/${nodeId}`, { name });
    await page.getByText(name, { exact: true }).waitFor();
    taken.push(performance.now() - began);
    await delay(300);
  }
  return spread(taken);
}

/** Brotli sizes of the first load, and of what each page adds. */
function sizes(): Record<string, Figure> {
  const assets = join(built, 'assets');
  const kib = (name: string): number => readFileSync(join(assets, `${name}.br`)).length / 1024;
  const html = readFileSync(join(built, 'index.html'), 'utf8');
  const first = [...html.matchAll(/\/console\/assets\/([^"]+)/g)].map(([, name = '']) => name);
  const pages = readdirSync(assets).filter((name) => /-page-[\w-]+\.js$/.test(name));
  return {
    first_load: rounded(first.reduce((sum, name) => sum + kib(name), 0)),
    pages: Object.fromEntries(pages.map((name) => [name.replace(/-page-[\w-]+\.js$/, ''), rounded(kib(name))])),
  };
}
