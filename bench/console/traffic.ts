/** What an open page asks for: requests a minute of an idle tab, and the topology of growing fleets. */
import { setTimeout as delay } from 'node:timers/promises';
import type { LightCredentials } from '../../scripts/simulate/light/fleet.js';
import type { Page } from 'playwright-core';
import { rounded, type Figure } from '../figures.js';
import { createNodes, spreadOver } from '../fleet-over-rest.js';
import type { BenchService } from '../stack.js';
import { settled } from './pages.js';
import type { Relay } from './relay.js';

/** How long a page is watched. */
const watchedMs = 60_000;
const kib = 1_024;

/** Requests and KiB a minute of a page at rest. @param ms less than a minute for a check that it works */
export async function atRest(page: Page, relay: Relay, ms = watchedMs): Promise<Record<string, Figure>> {
  await settled(page);
  // The page reads everything once more when its feed has begun.
  await delay(3_000);
  relay.take();
  await delay(ms);
  const { requests, bytes } = relay.take();
  const minutes = ms / 60_000;
  return { requests_a_minute: rounded(requests / minutes), kib_a_minute: rounded(bytes / kib / minutes) };
}

/** The topology as it opens: until the first shape is drawn, with its parts in the browser's cache, and at rest afterwards. */
export async function topologyFigures(page: Page, relay: Relay, ms?: number): Promise<Record<string, Figure>> {
  const open = async (): Promise<number> => {
    const began = performance.now();
    await page.goto('/console/topology');
    await page.locator('.react-flow__node').first().waitFor();
    return performance.now() - began;
  };
  await open();
  await settled(page);
  await page.goto('/console/');
  await settled(page);
  relay.take();
  const firstShapeMs = await open();
  await settled(page);
  const { bytes } = relay.take();
  const shapes = await page.locator('.react-flow__node').count();
  return {
    first_shape_ms: rounded(firstShapeMs),
    shapes,
    kib: rounded(bytes / kib),
    ...(await atRest(page, relay, ms)),
  };
}

const regions = 20;
/** How many nodes one command labels. */
const labelledAtOnce = 500;

/** More nodes, named as those of `createNodes`, with a region each, and a chain over every second pair of neighbours. */
export async function growFleet(
  service: BenchService,
  had: number,
  count: number,
): Promise<readonly LightCredentials[]> {
  const made = await createNodes(service, count - had, had);
  for (let region = 0; region < regions; region += 1) {
    const ids = made.filter((_, index) => index % regions === region).map(({ nodeId }) => nodeId);
    for (let from = 0; from < ids.length; from += labelledAtOnce) {
      const body = { node_ids: ids.slice(from, from + labelledAtOnce), set: { region: `region-${region}` } };
      await service.admin.call('POST', '/api/nodes/labels', body);
    }
  }
  await spreadOver(service, Math.floor(made.length / 2), async (post, index) => {
    const hops = [made[2 * index], made[2 * index + 1]].map((node) => ({
      node_id: node?.nodeId,
      listen_port: 443,
      outer: 'tcp',
      security: 'raw',
    }));
    const body = { name: `chain-${had + index}`, payload: 'tcp', hops, target: { endpoint: '192.0.2.10:8443' } };
    const { id } = await post<{ id: string }>('/api/l4-chains', body);
    await post(`/api/l4-chains/${id}/deploy`);
  });
  return made;
}
