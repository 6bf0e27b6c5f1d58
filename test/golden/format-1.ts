/** What the golden log and the golden data folder of format 1 hold, for their test and for the script that records them. */
import { readdirSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { applyAccounts, emptyAccounts } from '../../src/domain/accounts/accounts.js';
import { chainStatus } from '../../src/domain/chain/status.js';
import { emptyChain, type ChainHead } from '../../src/domain/log-chain/links.js';
import { readCommand } from '../../src/domain/log/upcast.js';
import { chainedStreams, streams, type RecordedCommand, type RecordedEvent } from '../../src/kernel/event.js';
import { createCommandAssembler } from '../../src/storage/follow.js';
import { foldOf } from '../support/fleet.js';
import { testLogChain } from '../support/log-chain.js';

export const golden = fileURLToPath(new URL('./format-1', import.meta.url));

/** What a log means, in terms that do not depend on the shapes of events. */
export function meaningOf(events: readonly RecordedEvent[]): unknown {
  const of = (stream: string): readonly RecordedCommand[] =>
    createCommandAssembler().add(events.filter((event) => event.stream === stream));
  const fleet = foldOf(of(streams.fleet));
  const { tables, singletons } = fleet;
  const accounts = emptyAccounts();
  for (const command of of(streams.accounts)) applyAccounts(accounts, readCommand(command));
  const chain = testLogChain();
  const headOf = (stream: string): ChainHead =>
    of(stream).reduce((head, command) => chain.follow(head, command), emptyChain);
  const named = <T extends { readonly name: string }>(table: { values(): Iterable<T> }, shown: (one: T) => unknown) =>
    Object.fromEntries([...table.values()].map((one) => [one.name, shown(one)]));
  return {
    generations: named(tables.node, ({ id }) => fleet.generationOf(id)),
    upstreams: named(tables.l4_upstream, ({ endpoint, enabled }) => ({ endpoint, enabled })),
    chains: named(tables.l4_chain, chainStatus),
    routes: named(tables.route, ({ host, enabled }) => ({ host, enabled })),
    credentials: named(tables.credential, ({ key_type, server_names, certificate, overlap }) => {
      return { key_type, server_names, pin: certificate?.spki_sha256 ?? null, overlap };
    }),
    policies: Object.fromEntries([...tables.listener_policy.values()].map((one) => [one.id, one.priority_order])),
    networks: named(tables.l3_network, ({ network_id, mtu, members, tunnels }) => {
      return { network_id, mtu, members, tunnels };
    }),
    heartbeat_interval_secs: singletons.connectivity.value.heartbeat_interval_secs,
    overrides: Object.keys(singletons.connectivity.value.nodes).length,
    compiler: singletons.service.value,
    log_chains: chainedStreams.map(headOf),
    users: Object.fromEntries(
      [...accounts.users.values()].map(({ username, role, token_version }) => [username, { role, token_version }]),
    ),
  };
}

/** Writes what the golden folder holds. */
export async function fillFleet(admin: RestClient): Promise<void> {
  const post = (path: string, body?: object): Promise<{ id: string }> => admin.call('POST', path, body);
  const [entry, exit] = [
    await post('/api/nodes', { name: 'entry', address: '192.0.2.1', labels: { site: 'north' } }),
    await post('/api/nodes', { name: 'exit', address: '192.0.2.2' }),
  ];
  await post(`/api/nodes/${entry.id}/psk`);
  const upstream = await post('/api/l4-upstreams', { name: 'web', endpoint: '192.0.2.10:443' });
  const chain = await post('/api/l4-chains', {
    name: 'web',
    payload: 'tcp',
    hops: [
      { node_id: entry.id, listen_port: 8443, outer: 'tcp', security: 'raw' },
      { node_id: exit.id, listen_port: 8444, outer: 'tcp', security: 'raw' },
    ],
    target: { upstream_id: upstream.id },
  });
  await post(`/api/l4-chains/${chain.id}/deploy`);
  await post('/api/credentials', { name: 'keys', key_type: 'x25519' });
}

const paths = ['/api/nodes', '/api/l4-upstreams', '/api/l4-chains', '/api/credentials', '/api/audit'] as const;

/** The lists that every release has to answer alike on the golden folder. */
export async function answersOf(admin: RestClient): Promise<{ readonly [path: string]: unknown }> {
  const answers: Record<string, unknown> = {};
  for (const path of paths) {
    const { items } = await admin.call<{ items: readonly { readonly action?: string }[] }>('GET', path);
    // Reading the answers is a sign-in itself.
    answers[path] = items.filter(({ action }) => action?.startsWith('session.') !== true);
  }
  return answers;
}

/** The files of a data folder but for its lock and its read store, which is filled again from the log, as paths in it. */
export function packedFiles(dataDir: string, folder = dataDir): readonly string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) return name === 'lock' || name === 'read' ? [] : packedFiles(dataDir, path);
    return name === 'lock.mdb' || name.startsWith('opened-by-') ? [] : [relative(dataDir, path)];
  });
}
