/**
 * The fleet as a file: export, a plan without changes, a plan with fifty and its apply, an apply that changes every node, its
 * answer and its revert, and a settings change for all nodes; each with the longest block of the event loop, and memory. Aims
 * of `docs/contract/automation.md#the-fleet-as-a-file`: with the large fleet, an export under 5 s; a plan of 10,000 resources
 * under 2 s; no slice above 50 ms.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parse } from 'yaml';
import { createRestClient, type RestClient } from '../scripts/stack/rest-client.js';
import { rounded, type Figure, type Report } from './figures.js';
import type { FleetShape } from './fleet-log.js';
import type { BenchOptions } from './options.js';
import { metricsOf, residentBytes, withFolder, withService, writeFleet, type BenchService } from './stack.js';

const shapes: { readonly [name: string]: FleetShape } = {
  nodes_1000_chains_2000: { nodes: 1_000, upstreams: 500, chains: 2_000 },
  nodes_10000_chains_20000: { nodes: 10_000, upstreams: 2_000, chains: 20_000 },
};
const quickShapes: typeof shapes = { nodes_100_chains_200: { nodes: 100, upstreams: 50, chains: 200 } };
const changed = 50;
const answerWithinMs = 300_000;
const metricsReusedMs = 1_500;

interface Document {
  readonly nodes: { readonly [name: string]: object };
}
interface Plan {
  readonly steps: readonly unknown[];
  readonly etag: string;
}

export async function fleetFile({ quick }: BenchOptions): Promise<Report> {
  const figures: Record<string, Figure> = {};
  for (const [name, shape] of Object.entries(quick ? quickShapes : shapes)) {
    figures[name] = await withFolder(async (folder) => {
      const dataDir = join(folder, 'data');
      await writeFleet(dataDir, { shape });
      return withService({ dataDir }, (service) => measure(service));
    });
  }
  return { bench: 'fleet-file', figures };
}

async function measure({ process: running, token }: BenchService): Promise<Figure> {
  const rest = createRestClient(running.url, token, answerWithinMs);
  const residentMib = async (): Promise<number> => rounded((await residentBytes(running.program().pid)).peak / 2 ** 20);
  const figures: Record<string, Figure> = { peak_mib_before: await residentMib() };
  const row = async <T>(name: string, run: () => Promise<T>): Promise<T> => {
    const longestBlock = 'nodejs_eventloop_lag_max_seconds';
    // The gauge covers the time since the last reading, and readings are cached for a while.
    await delay(metricsReusedMs);
    await metricsOf(running.url);
    const began = performance.now();
    const answer = await run();
    const ms = performance.now() - began;
    await delay(metricsReusedMs);
    const gauge = await metricsOf(running.url);
    figures[name] = {
      ms: rounded(ms),
      longest_block_ms: rounded(gauge(longestBlock) * 1_000),
      peak_mib: await residentMib(),
    };
    return answer;
  };

  const { documents } = await row('export', () =>
    rest.call<{ documents: { document: string }[] }>('GET', '/api/fleet/export?set='),
  );
  const [yaml = ''] = documents.map(({ document }) => document);
  const document = parse(yaml, { maxAliasCount: 0 }) as Document;
  figures['document_kib'] = {
    yaml: rounded(yaml.length / 1024),
    json: rounded(JSON.stringify(document).length / 1024),
  };
  await row('plan_unchanged_json', () => planned(rest, JSON.stringify(document), 0));
  await row('plan_unchanged_yaml', () => planned(rest, yaml, 0));
  const other = JSON.stringify({ ...document, nodes: withChanges(document.nodes, changed) });
  const { etag } = await row('plan_50_changes', () => planned(rest, other, changed));
  await row('apply_50_changes', () =>
    rest.call('POST', '/api/fleet/apply', { document: other }, { 'if-match': `"${etag}"` }),
  );
  const all = JSON.stringify({ ...document, nodes: withChanges(document.nodes, Number.POSITIVE_INFINITY) });
  const { apply_id: id } = await row('apply_all_nodes', () =>
    rest.call<{ apply_id: string }>('POST', '/api/fleet/apply', { document: all }),
  );
  await row('answer_about_it', () => rest.call('GET', `/api/fleet/applies/${id}`));
  await row('its_entries', () => rest.call('GET', '/api/audit?resource_type=fleet&page_size=500'));
  await row('dry_run_of_its_revert', () => rest.call('POST', `/api/fleet/applies/${id}/revert?dry_run=true`));
  await row('its_revert', () => rest.call('POST', `/api/fleet/applies/${id}/revert`));
  const settings = { multiplex: true, multiplex_port: 7443 };
  await row('settings_of_all_nodes', () => rest.call('PUT', '/api/settings/connectivity', settings));
  return figures;
}

/** @throws Error when the plan has another number of steps */
async function planned(rest: RestClient, document: string, steps: number): Promise<Plan> {
  const plan = await rest.call<Plan>('POST', '/api/fleet/plan', { document });
  if (plan.steps.length !== steps) throw new Error(`expected a plan of ${steps} steps, got ${plan.steps.length}`);
  return plan;
}

/** Changes the address of the first `count` nodes. */
const withChanges = (nodes: Document['nodes'], count: number): Document['nodes'] =>
  Object.fromEntries(
    Object.entries(nodes).map(([name, fields], index) => [
      name,
      index < count ? { ...fields, address: '192.0.2.1' } : fields,
    ]),
  );
