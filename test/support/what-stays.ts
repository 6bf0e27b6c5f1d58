/** What has to be the same on a site before and after its stores are moved or its read models are lost. */
import { expect } from 'vitest';
import { runMaintenance } from './programs.js';
import type { SmallSite } from './small-site.js';

type Env = Readonly<Record<string, string>>;

/** Runs a maintenance command, which must succeed. @returns its output */
export async function command(name: string, args: readonly string[], env: Env): Promise<string> {
  const { code, out, err } = await runMaintenance(name, args, env);
  expect([name, code, err]).toEqual([name, 0, err]);
  return out;
}

/** How many snapshots the service has offered since its start. */
export async function offered({ service }: SmallSite): Promise<number> {
  const text = await (await fetch(`${service.url}/metrics`)).text();
  return Number(/^svc_delivery_offered_total (\d+)$/m.exec(text)?.[1]);
}

/** What the agents run, according to their own logs and to the service. */
export async function running(site: SmallSite): Promise<unknown> {
  const nodes = await site.converged();
  return {
    nodes: nodes.map(({ id, generation, applied_generation }) => [id, generation, applied_generation]),
    applied: [site.applied('a'), site.applied('b')],
    through: await site.through(),
  };
}

/** Every answer from read models, without telemetry and sign-ins, which change meanwhile. */
export async function answers(site: SmallSite): Promise<unknown> {
  const admin = site.admin();
  const items = async (path: string): Promise<readonly Record<string, unknown>[]> =>
    (await admin.call<{ items: readonly Record<string, unknown>[] }>('GET', path)).items;
  const nodes = (await items('/api/nodes?sort=name')).map(
    ({ id, name, generation, applied_generation, apply, version, created_at, updated_at, psk_fingerprint }) => {
      return { id, name, generation, applied_generation, apply, version, created_at, updated_at, psk_fingerprint };
    },
  );
  const chains = (await items('/api/l4-chains')).map((chain) => withoutReports(chain));
  return {
    nodes,
    chains,
    upstreams: (await items('/api/l4-upstreams')).map(withoutReports),
    deployments: (await items(`/api/l4-chains/${String(chains[0]?.['id'])}/deployments`)).map((deployment) => ({
      ...deployment,
      nodes: (deployment['nodes'] as readonly Record<string, unknown>[]).map(withoutReports),
    })),
    audit: (await items('/api/audit?page_size=500')).filter(({ action }) => action !== 'session.sign_in'),
    settings: await admin.call('GET', '/api/settings/connectivity'),
    config: await Promise.all(nodes.map(({ id }) => admin.call('GET', `/api/nodes/${String(id)}/config`))),
  };
}

/** A chain, a node of a deployment, or an upstream, without what agents report of it. */
function withoutReports({
  hop_status: _hops,
  listeners: _listeners,
  health: _health,
  traffic: _traffic,
  ...rest
}: Record<string, unknown>): Record<string, unknown> {
  return rest;
}
