/**
 * Random histories of a small fleet. A move is a kind and a seed; the fleet at that moment determines its command, so most
 * commands are accepted, and names, ports and references sometimes collide.
 */
import fc from 'fast-check';
import type { ChainDefinition, ChainState, Hop, Target } from '../../src/domain/chain/chain.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { policyId, policyKey, priorityLabels, type PolicyKey } from '../../src/domain/listener-policy/policy.js';
import type { IfMatch } from '../../src/domain/resource/refusal.js';
import type { RouteDefinition } from '../../src/domain/route/route.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import { dealer, type Dealer } from './dealer.js';
import { sealed, upstreamTls } from './fleet.js';
import { createNetwork, editNetwork } from './random-networks.js';
import { createCredential, editCredential, namesFor, transport } from './random-transports.js';

/** How often each kind of move is drawn. */
const weights = {
  createNode: 5,
  updateNode: 7,
  deleteNode: 2,
  labelNodes: 3,
  issuePsk: 1,
  refresh: 2,
  reportAddress: 5,
  raiseGeneration: 2,
  createUpstream: 4,
  updateUpstream: 6,
  deleteUpstream: 2,
  createChain: 14,
  renameChain: 3,
  switchChain: 6,
  editChain: 8,
  deployChain: 14,
  deleteChain: 2,
  createRoute: 6,
  editRoute: 4,
  deleteRoute: 1,
  savePolicy: 4,
  deletePolicy: 1,
  createCredential: 14,
  editCredential: 10,
  endOverlap: 2,
  deleteCredential: 2,
  createNetwork: 8,
  editNetwork: 8,
  deleteNetwork: 1,
  createJoinToken: 3,
  joinNode: 3,
  deleteJoinToken: 1,
  settings: 3,
  overrides: 4,
  raiseCompiler: 2,
  lowerCompiler: 2,
  /** Takes back an earlier command, whatever happened since: `fleet-play.ts`, which knows the log. */
  undo: 12,
} as const;
type MoveKind = keyof typeof weights;

export interface Move {
  readonly kind: MoveKind;
  /** Seeds the details of the move. */
  readonly seed: number;
}

const kinds = Object.entries(weights).flatMap(([kind, weight]) => Array<MoveKind>(weight).fill(kind as MoveKind));

/** Nodes and credentials of every type, from which many chains can be made. */
const prepared: readonly Move[] = [
  ...[1, 2, 3].map((seed) => ({ kind: 'createNode', seed }) as const),
  ...[1, 2, 3, 4, 5, 6].map((seed) => ({ kind: 'createCredential', seed }) as const),
];

/** Histories of up to `maxLength` moves; half of them begin with prepared nodes and credentials. */
export function histories(maxLength = 60): fc.Arbitrary<readonly Move[]> {
  const move = fc.record({
    kind: fc.constantFrom(...kinds),
    seed: fc.nat(0x7fff_ffff),
  });
  const moves = fc.array(move, { minLength: 1, maxLength, size: 'max' });
  return fc
    .tuple(fc.boolean(), moves)
    .map(([ready, rest]) => (ready ? [...prepared, ...rest].slice(0, maxLength) : rest));
}

// "É" twice, composed and decomposed: one name after NFC.
const greek = [
  'beta',
  'gamma',
  'delta',
  'epsilon',
  'zeta',
  'eta',
  'theta',
  'iota',
  'kappa',
  'lambda',
  'mu',
  'nu',
  'xi',
  'pi',
];
const names = ['alpha', 'Alpha', '\u00c9', 'e\u0301', ...greek];
const addresses = [null, 'a.example', '198.51.100.7', '2001:db8::7', 'b.example'];
const ports = [80, 443, 9000, 9001, 9002];
const listenAddrs = ['0.0.0.0', '::', '10.0.0.1', '10.0.0.1', '10.0.0.2', '10.0.0.3', 'fd00::1', 'fd00::2'];
const month = 31 * 86_400_000;
const labelKeys = ['site', 'rack', 'constructor', '__proto__', '10'];

/** The command of a move on this fleet; undefined when the fleet has nothing to apply it to. */
export function commandOf(fleet: Fleet, move: Move, step: number): FleetCommand | undefined {
  const deal = dealer(move.seed);
  const nodes = [...fleet.tables.node.ids()].sort();
  const upstreams = [...fleet.tables.l4_upstream.ids()].sort();
  const chains = [...fleet.tables.l4_chain.ids()].sort();
  const routes = [...fleet.tables.route.ids()].sort();
  const credentials = [...fleet.tables.credential.ids()].sort();
  const create =
    move.kind === 'createNode' ||
    move.kind === 'createUpstream' ||
    move.kind === 'createChain' ||
    move.kind === 'createRoute' ||
    move.kind === 'createCredential' ||
    move.kind === 'createNetwork';
  const id = uuidFromName(`${move.kind} ${step}`);
  const [node, upstream, chain, route, credential] = [nodes, upstreams, chains, routes, credentials].map((list) =>
    list.length === 0 ? undefined : deal.of(list),
  );
  const networks = [...fleet.tables.l3_network.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  const network = networks.length === 0 ? undefined : deal.of(networks);
  const version = (current: number | undefined): IfMatch =>
    deal.chance(10) ? deal.of<IfMatch>(['*', [current ?? 0], [0, current ?? 0], [9999]]) : undefined;
  const command = create ? creation(fleet, move.kind, id, deal, nodes, upstreams) : undefined;
  if (command !== undefined) return command;
  switch (move.kind) {
    case 'createNode':
    case 'createUpstream':
    case 'createChain':
    case 'createRoute':
    case 'createCredential':
    case 'createNetwork':
    case 'undo':
      return undefined;
    case 'updateNode': {
      if (node === undefined) return undefined;
      return {
        type: 'UpdateNode',
        id: node,
        ifMatch: version(fleet.tables.node.get(node)?.version),
        ...(deal.chance(30) ? { name: deal.of(names) } : {}),
        ...(deal.chance(20) ? { description: deal.of([null, 'one', 'two']) } : {}),
        ...(deal.chance(60) ? { address: deal.of(addresses) } : {}),
        ...(deal.chance(40) ? { labels: labels(deal) } : {}),
      };
    }
    case 'labelNodes': {
      const set = labels(deal);
      const remove = labelKeys.filter((key) => !Object.hasOwn(set, key) && deal.chance(30));
      const ids = nodes.filter(() => deal.chance(60));
      return ids.length === 0 ? undefined : { type: 'LabelNodes', ids, set, remove };
    }
    case 'deleteNode': {
      // Often a node that nothing refers to, so that some deletes are accepted.
      const free = nodes.filter((candidate) => fleet.references.get(`node/${candidate}`).size === 0);
      const victim = free.length > 0 && deal.chance(50) ? deal.of(free) : node;
      return victim === undefined ? undefined : { type: 'DeleteNode', id: victim, ifMatch: undefined };
    }
    case 'issuePsk':
      return node === undefined ? undefined : { type: 'IssueNodePsk', id: node, fingerprint: 'f', verifier: sealed };
    case 'refresh':
      return node === undefined ? undefined : { type: 'RefreshNodeConfig', id: node };
    case 'reportAddress': {
      if (node === undefined) return undefined;
      const [public_ipv4, public_ipv6] = [
        deal.of([null, '203.0.113.1', '203.0.113.2', '127.0.0.1']),
        deal.of([null, '2001:db8::1', '::ffff:169.254.1.1']),
      ];
      return { type: 'ReportNodeAddress', id: node, public_ipv4, public_ipv6 };
    }
    case 'raiseGeneration': {
      const reported = (node === undefined ? 0 : (fleet.generationOf(node) ?? 0)) + deal.upTo(1000);
      return node === undefined ? undefined : { type: 'RaiseNodeGeneration', id: node, reported };
    }
    case 'updateUpstream': {
      if (upstream === undefined) return undefined;
      return {
        type: 'UpdateUpstream',
        id: upstream,
        ifMatch: version(fleet.tables.l4_upstream.get(upstream)?.version),
        ...(deal.chance(40) ? { endpoint: deal.of(['x.example:1', 'y.example:2', '[2001:db8::9]:3']) } : {}),
        ...(deal.chance(20) ? { server_names: deal.of([[], ['s.example'], ['s.example', 't.example']]) } : {}),
        ...(deal.chance(20) ? { health_check_interval_ms: deal.of([1000, 10_000]) } : {}),
        ...(deal.chance(40) ? { enabled: deal.chance(50) } : {}),
        ...(deal.chance(20) ? { tls: deal.of([null, upstreamTls]) } : {}),
      };
    }
    case 'deleteUpstream':
      return upstream === undefined ? undefined : { type: 'DeleteUpstream', id: upstream, ifMatch: undefined };
    case 'renameChain': {
      if (chain === undefined) return undefined;
      const ifMatch = version(fleet.tables.l4_chain.get(chain)?.version);
      return { type: 'UpdateChain', id: chain, ifMatch, name: deal.of(names), description: deal.of([null, 'some']) };
    }
    case 'switchChain': {
      if (chain === undefined) return undefined;
      const enabled = fleet.tables.l4_chain.get(chain)?.enabled !== true;
      return {
        type: 'UpdateChain',
        id: chain,
        ifMatch: undefined,
        enabled,
        ...(deal.chance(15) ? { name: deal.of(names) } : {}),
      };
    }
    case 'editChain':
      return chain === undefined ? undefined : edit(fleet, chain, deal, nodes, upstreams);
    case 'deployChain':
      if (chain !== undefined && fleet.tables.l4_chain.get(chain)?.enabled !== true && deal.chance(80))
        return undefined;
      return chain === undefined
        ? undefined
        : { type: 'DeployChain', id: chain, ifMatch: version(fleet.tables.l4_chain.get(chain)?.version) };
    case 'deleteChain':
      return chain === undefined ? undefined : { type: 'DeleteChain', id: chain, ifMatch: undefined };
    case 'editRoute': {
      if (route === undefined) return undefined;
      const current = fleet.tables.route.get(route);
      const { name, host, path_prefix, hops, backend } = routeFields(deal, nodes);
      return {
        type: 'UpdateRoute',
        id: route,
        ifMatch: version(current?.version),
        ...(deal.chance(15) ? { name } : {}),
        ...(deal.chance(25) ? { host, path_prefix } : {}),
        ...(deal.chance(25) ? { hops } : {}),
        ...(deal.chance(25) ? { backend } : {}),
        ...(deal.chance(40) ? { enabled: current?.enabled !== true } : {}),
      };
    }
    case 'deleteRoute':
      return route === undefined ? undefined : { type: 'DeleteRoute', id: route, ifMatch: undefined };
    case 'savePolicy': {
      if (node === undefined) return undefined;
      const key = { node_id: deal.chance(3) ? uuidFromName('nowhere') : node, ...policyListener(deal) };
      const priority_order = priorityLabels.filter(() => deal.chance(50)).toReversed();
      const current = fleet.get(policyKey, policyId(key));
      return { type: 'SaveListenerPolicy', ifMatch: version(current?.version), ...key, priority_order };
    }
    case 'deletePolicy': {
      const policies = [...fleet.tables.listener_policy.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
      if (policies.length === 0) return undefined;
      const { node_id, transport, listen_addr, listen_port, version: current } = deal.of(policies);
      const key = { node_id, transport, listen_addr, listen_port };
      return { type: 'DeleteListenerPolicy', ifMatch: version(current), ...key };
    }
    case 'editCredential': {
      const used = credentials.filter((one) => fleet.referrersOf('credential', one).size > 0);
      const edited = used.length > 0 && deal.chance(70) ? deal.of(used) : credential;
      const current = edited === undefined ? undefined : fleet.tables.credential.get(edited);
      if (current === undefined) return undefined;
      return editCredential(fleet, deal, current, version(current.version), deal.of(names));
    }
    case 'endOverlap': {
      const { id: ending, overlap } = [...fleet.tables.credential.values()].find((one) => one.overlap !== null) ?? {};
      if (ending === undefined) return undefined;
      return { type: 'EndCredentialOverlap', id: ending, ends_at: overlap?.ends_at ?? '' };
    }
    case 'deleteCredential':
      return credential === undefined ? undefined : { type: 'DeleteCredential', id: credential, ifMatch: undefined };
    case 'editNetwork':
      if (network === undefined) return undefined;
      return editNetwork(fleet, deal, network, version(network.version), deal.of(names), nodes);
    case 'deleteNetwork':
      return network === undefined ? undefined : { type: 'DeleteL3Network', id: network.id, ifMatch: undefined };
    case 'createJoinToken':
      return {
        type: 'CreateJoinToken',
        id,
        // Some end before the next one is made, and are forgotten.
        now: step * month,
        name: deal.of(names),
        uses: 1 + deal.upTo(2),
        expires_at: new Date((step + deal.upTo(30)) * month).toISOString(),
        labels: labels(deal),
        name_prefix: deal.of([null, 'edge-']),
        created_by: { id: 'maker', name: 'maker' },
        verifier: sealed,
      };
    case 'joinNode': {
      const tokens = [...fleet.tables.join_token.ids()].sort();
      if (tokens.length === 0 || nodes.length > 6) return undefined;
      const [token, request_id] = [deal.of(tokens), deal.of(['one', 'two', 'three'])];
      const before = fleet.tables.join_token.get(token)?.joins.find((join) => join.request_id === request_id);
      const psk = { fingerprint: 'f', verifier: sealed };
      const node_id = before?.node_id ?? id;
      return { type: 'JoinNode', id: token, now: step * month, node_id, request_id, name: deal.of(names), psk };
    }
    case 'deleteJoinToken': {
      const tokens = [...fleet.tables.join_token.ids()].sort();
      return tokens.length === 0 ? undefined : { type: 'DeleteJoinToken', id: deal.of(tokens), ifMatch: undefined };
    }
    case 'settings':
      return {
        type: 'UpdateConnectivity',
        ifMatch: version(fleet.singletons.connectivity.value.version),
        ...(deal.chance(60) ? { multiplex: deal.chance(50) } : {}),
        ...(deal.chance(60) ? { multiplex_port: deal.of([null, 9000, 10_000, 10_001, 10_002]) } : {}),
        ...(deal.chance(20) ? { heartbeat_interval_secs: deal.of([5, 10, 20]) } : {}),
        ...(deal.chance(20) ? { offline_after_secs: deal.of([null, 15, 60]) } : {}),
      };
    case 'overrides': {
      if (nodes.length === 0) return undefined;
      const overrides = Array.from({ length: 1 + deal.upTo(2) }, () => ({
        node_id: deal.of(nodes),
        multiplex: deal.of([null, true, true, false]),
        ...(deal.chance(85) ? { multiplex_port: deal.of([null, 9002, 10_000, 10_001, 10_002]) } : {}),
      }));
      return { type: 'UpdateConnectivity', ifMatch: undefined, nodes: overrides };
    }
    case 'raiseCompiler':
      return { type: 'RaiseCompilerVersion', version: fleet.singletons.service.value + deal.upTo(2) };
    case 'lowerCompiler':
      return { type: 'LowerCompilerVersion', version: deal.upTo(fleet.singletons.service.value) };
  }
}

function creation(
  fleet: Fleet,
  kind: MoveKind,
  id: string,
  deal: Dealer,
  nodes: readonly string[],
  upstreams: readonly string[],
): FleetCommand | undefined {
  const name = deal.of(names);
  if ((kind === 'createNode' && nodes.length < 5) || nodes.length < 2) {
    const psk = deal.chance(50) ? { fingerprint: 'f', verifier: sealed } : null;
    return { type: 'CreateNode', id, name, description: null, address: deal.of(addresses), labels: labels(deal), psk };
  }
  if (kind === 'createUpstream') {
    const tls = deal.chance(25) ? upstreamTls : null;
    const fields = { endpoint: 'x.example:1', server_names: [], health_check_interval_ms: 10_000, enabled: true };
    return { type: 'CreateUpstream', id, name, ...fields, tls, reality: null };
  }
  if (kind === 'createCredential') return createCredential(fleet, deal, id, name);
  if (kind === 'createNetwork') return createNetwork(fleet, deal, id, name, nodes);
  if (kind === 'createRoute') return { type: 'CreateRoute', id, enabled: deal.chance(85), ...routeFields(deal, nodes) };
  return {
    type: 'CreateChain',
    id,
    name,
    description: null,
    enabled: deal.chance(85),
    ...definition(fleet, deal, nodes, upstreams),
  };
}

function labels(deal: Dealer): { readonly [key: string]: string } {
  return Object.fromEntries(labelKeys.flatMap((key) => (deal.chance(30) ? [[key, deal.of(['x', 'y'])]] : [])));
}

function definition(
  fleet: Fleet,
  deal: Dealer,
  nodes: readonly string[],
  upstreams: readonly string[],
): ChainDefinition {
  const beside = deal.chance(30) ? listenerOfAnother(fleet, deal) : undefined;
  if (beside !== undefined) return { ...beside, target: target(deal, beside.payload, upstreams) };
  const payload = deal.chance(65) ? 'tcp' : 'udp';
  const rest = [...nodes];
  const count = 1 + deal.upTo(Math.min(2, nodes.length - 1));
  const hops = Array.from({ length: count }, (): Hop => {
    const [node_id = ''] = rest.splice(deal.upTo(rest.length - 1), 1);
    // Sometimes a node that is in the chain already; below, one that does not exist.
    if (deal.chance(4)) rest.push(node_id);
    const listening = { listen_addr: deal.of(listenAddrs), listen_port: deal.of(ports) };
    return {
      node_id: deal.chance(2) ? uuidFromName('nowhere') : node_id,
      ...listening,
      ...transport(fleet, deal, payload),
      ...(deal.chance(30) ? { dial_addr: deal.of(['dial.example', '192.0.2.77']) } : {}),
    };
  });
  return { payload, hops, target: target(deal, payload, upstreams) };
}

/** The fields of a route but `enabled`. */
function routeFields(deal: Dealer, nodes: readonly string[]): Omit<RouteDefinition, 'enabled'> {
  const rest = [...nodes];
  const hops = Array.from({ length: 1 + deal.upTo(Math.min(2, nodes.length - 1)) }, () => {
    const [node_id = ''] = rest.splice(deal.upTo(rest.length - 1), 1);
    if (deal.chance(4)) rest.push(node_id);
    return {
      node_id: deal.chance(2) ? uuidFromName('nowhere') : node_id,
      listen_addr: deal.of(listenAddrs),
      listen_port: deal.of(ports),
    };
  });
  return {
    name: deal.of(names),
    host: deal.of(['a.example', 'b.example']),
    path_prefix: deal.of(['/', '/x']),
    hops,
    backend: deal.of(['192.0.2.1:80', 'backend.example:8080']),
  };
}

/** One hop that listens where a chain does now, or where it is deployed: by some of the names there and others, or differently. */
function listenerOfAnother(fleet: Fleet, deal: Dealer): Pick<ChainDefinition, 'payload' | 'hops'> | undefined {
  const chains = [...fleet.tables.l4_chain.ids()].sort().flatMap((id) => fleet.tables.l4_chain.get(id) ?? []);
  const definitions = chains.flatMap((chain) => [chain, ...(chain.deployed === null ? [] : [chain.deployed])]);
  if (definitions.length === 0) return undefined;
  const { payload, hops } = deal.of(definitions);
  const hop = deal.of(hops);
  const next =
    hop.outer === 'tcp' && deal.chance(60)
      ? { ...hop, server_names: namesFor(fleet, deal, hop) }
      : {
          node_id: hop.node_id,
          listen_addr: hop.listen_addr,
          listen_port: hop.listen_port,
          ...transport(fleet, deal, payload),
        };
  return { payload, hops: [next] };
}

function policyListener(deal: Dealer): Omit<PolicyKey, 'node_id'> {
  return {
    transport: deal.of(['tcp', 'udp']),
    listen_addr: deal.of(['0.0.0.0', '10.0.0.1']),
    listen_port: deal.of(ports),
  };
}

function target(deal: Dealer, payload: 'tcp' | 'udp', upstreams: readonly string[]): Target {
  if (upstreams.length > 0 && deal.chance(75)) return { upstream_id: deal.of(upstreams) };
  const endpoint = deal.of(['192.0.2.1:80', 't.example:443']);
  return payload === 'tcp' && deal.chance(25) ? { endpoint, tls: upstreamTls } : { endpoint };
}

function edit(
  fleet: Fleet,
  id: string,
  deal: Dealer,
  nodes: readonly string[],
  upstreams: readonly string[],
): FleetCommand | undefined {
  const live = deal.chance(60) ? liveByName(fleet, deal) : undefined;
  if (live !== undefined) return editOfLive(fleet, live, deal);
  const chain = fleet.tables.l4_chain.get(id);
  if (chain === undefined || nodes.length === 0) return undefined;
  const whole = { type: 'UpdateChain', id, ifMatch: undefined } as const;
  if (deal.chance(40)) return { ...whole, ...definition(fleet, deal, nodes, upstreams) };
  if (deal.chance(40)) return { ...whole, target: target(deal, chain.payload, upstreams) };
  const at = deal.upTo(chain.hops.length - 1);
  const listen_port = deal.of(ports);
  const dial = deal.chance(40) ? { dial_addr: deal.of(['dial.example', 'other.example']) } : {};
  return { ...whole, hops: chain.hops.map((hop, index) => (index === at ? { ...hop, listen_port, ...dial } : hop)) };
}

/** An enabled chain whose deployed definition listens by server names. */
function liveByName(fleet: Fleet, deal: Dealer): ChainState | undefined {
  const chains = [...fleet.tables.l4_chain.values()].filter(
    ({ enabled, deployed }) => enabled && deployed?.hops.some(({ server_names }) => (server_names ?? []).length > 0),
  );
  return chains.length === 0 ? undefined : deal.of(chains.sort((a, b) => (a.id < b.id ? -1 : 1)));
}

/** More names where it listens, then the same names elsewhere: its two definitions share a part of what they claim. */
function editOfLive(fleet: Fleet, { id, hops, deployed }: ChainState, deal: Dealer): FleetCommand {
  const at = Math.max(
    0,
    hops.findIndex(({ server_names }) => (server_names ?? []).length > 0),
  );
  const hop = hops[at] ?? { outer: 'tcp', security: 'raw' };
  const names = hops[at]?.server_names ?? [];
  const deployedNames = deployed?.hops[at]?.server_names ?? [];
  const changes =
    names.length > deployedNames.length
      ? { listen_port: deal.of(ports) }
      : { server_names: [...new Set([...names, ...namesFor(fleet, deal, hop)])] };
  return {
    type: 'UpdateChain',
    id,
    ifMatch: undefined,
    hops: hops.map((hop, index) => (index === at && hop.outer === 'tcp' ? { ...hop, ...changes } : hop)),
  };
}
