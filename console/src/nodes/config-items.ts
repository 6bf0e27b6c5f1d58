/**
 * A node's configuration as sentences: one item for each rule, upstream, certificate, policy and setting, with the
 * facts by which two generations are compared. Pure; secrets are masked before they come here. Implements "its
 * configuration readable" of `docs/contract/console.md#pages`.
 */
import { formatAddress, formatListener } from '../shared/ui/format.js';
import { say, textOfWords, type Part, type Ref, type Words } from './config-parts.js';
import type {
  Certificate,
  Cluster,
  ConfigSnapshot,
  HopRule,
  HttpRule,
  Origin,
  Policy,
  TunnelRule,
} from './config-snapshot.js';
import { configText as text } from './config.text.js';

export type ItemGroup = keyof typeof text.groups;
type Fact = keyof typeof text.facts;

export interface ConfigItem {
  /** The same in every generation. */
  readonly key: string;
  readonly group: ItemGroup;
  readonly sentence: Words;
  readonly facts: Readonly<Partial<Record<Fact, Words>>>;
  /** The part of the snapshot itself, for differences that no fact shows. */
  readonly raw: unknown;
}

/** The node of a chain's hop, where it still listens on this port. */
export type NodeOfHop = (chainId: string, hopIndex: number, port: number) => Omit<Ref, 'type'> | undefined;

export function itemsOf(snapshot: ConfigSnapshot, nodeOfHop: NodeOfHop): readonly ConfigItem[] {
  const { gateway, l3, node } = snapshot;
  const hops = [...gateway.tcp_proxy_rules, ...gateway.quic_rules, ...gateway.udp_rules];
  const clusters = new Map(gateway.upstream_clusters.map((cluster) => [cluster.name, cluster]));
  const ofRoutes = new Set(gateway.http_proxy_rules.map(({ upstream_cluster: name }) => name));
  return [
    ...hops.map((rule) => hopItem(rule, nodeOfHop)),
    ...gateway.http_proxy_rules.map((rule) => httpItem(rule, clusters.get(rule.upstream_cluster))),
    ...l3.rules.map(tunnelItem),
    ...gateway.upstream_clusters.filter(({ name }) => !ofRoutes.has(name)).map(upstreamItem),
    ...(gateway.tls?.certificates ?? []).map(certificateItem),
    ...gateway.listener_policies.map(policyItem),
    ...(node.multiplex ? [settingsItem(node)] : []),
  ];
}

/** `OUTER_TRANSPORT_FAKE_TCP` is `FAKE_TCP`. */
const wordOf = (value: string, prefix: string): string => value.replace(prefix, '');
const outerOf = (value: string): string => wordOf(value, 'OUTER_TRANSPORT_');

const listOf = (items: readonly string[]): Words => [items.length === 0 ? text.empty : items.join(', ')];

function originOf({ resource_type: type, resource_id: id, resource_name: name }: Origin): Words {
  const ref = { type: type as Ref['type'], id, name };
  return text.origin(text.origins[type] ?? type, ref);
}

function hopItem(rule: HopRule, nodeOfHop: NodeOfHop): ConfigItem {
  const { rule_id: key, origin, transport_profile: profile, outbound } = rule;
  const outer = outerOf(profile.outer);
  const transport = outer === 'QUIC' || outer === 'UDP' ? 'udp' : 'tcp';
  const listens = [formatListener(transport, rule.listen_addr, rule.listen_port)];
  const used = originOf(origin);
  const [takes, passes] = [takesOf(rule, text.outers[outer] ?? outer), passesOf(rule, nodeOfHop)];
  const { reality, quic_reality: quic, noise_public_key: noise } = outbound;
  const dialled = reality ?? quic;
  const keys = [dialled?.public_key, dialled?.short_id, noise].filter((one) => one !== undefined && one !== '');
  return {
    key,
    group: 'listeners',
    sentence: text.hop(listens, used, takes, passes),
    facts: {
      listens,
      used,
      takes,
      passes,
      keys: listOf(keys as readonly string[]),
      pins: listOf(rule.upstream_tls_spki_pins_sha256 ?? []),
      ...(rule.max_streams_per_connection !== undefined && { streams: [text.atMost(rule.max_streams_per_connection)] }),
    },
    raw: rule,
  };
}

/** What comes in. */
function takesOf(rule: HopRule, outer: string): Words {
  const { transport_profile: profile, server_names: names = [], tls_credential_id: id = '' } = rule;
  const security = wordOf(profile.security, 'SECURITY_LAYER_');
  switch (security) {
    case 'TLS':
      return text.tls(names, { type: 'credential', id, name: null });
    case 'REALITY':
      return rule.reality === undefined ? [security] : [text.reality(outer, rule.reality)];
    case 'NOISE':
      return [text.noise(outer)];
    default:
      return [names.length === 0 ? text.plain(outer) : text.byName(names)];
  }
}

/** Where it goes, and how. */
function passesOf({ origin, outbound }: HopRule, nodeOfHop: NodeOfHop): Words {
  const { endpoint, upstream_cluster: upstream, transport_profile: profile } = outbound;
  const [outer, security] = [outerOf(profile.outer), wordOf(profile.security, 'SECURITY_LAYER_')];
  const name = outbound.reality?.server_name ?? outbound.quic_reality?.server_name ?? outbound.tls_server_name;
  const spoken = text.securities[security];
  const over =
    spoken === undefined
      ? text.plain(text.outers[outer] ?? outer)
      : text.named(outer === 'TCP' ? spoken : `${spoken} over ${text.outers[outer] ?? outer}`, name);
  return text.over(nextOf(origin, endpoint, upstream, nodeOfHop), over);
}

function nextOf(
  origin: Origin,
  endpoint: string | undefined,
  upstream: string | undefined,
  nodeOfHop: NodeOfHop,
): Words {
  if (upstream !== undefined) return say`upstream ${{ type: 'l4_upstream', id: upstream, name: null }}`;
  if (endpoint === undefined) return [text.nothingThere];
  const port = Number(endpoint.slice(endpoint.lastIndexOf(':') + 1));
  const node = nodeOfHop(origin.resource_id, origin.hop_index + 1, port);
  return node === undefined ? [endpoint] : text.next({ type: 'node', ...node }, endpoint);
}

/** With its cluster, which no other rule has. */
function httpItem(rule: HttpRule, cluster: Cluster | undefined): ConfigItem {
  const listens = [formatListener('tcp', rule.listen_addr, rule.listen_port)];
  const used = originOf(rule.origin);
  const address = `${rule.host}${rule.path_prefix}`;
  const passes = listOf(cluster?.endpoints ?? []);
  return {
    key: rule.rule_id,
    group: 'listeners',
    sentence: text.http(listens, used, address, passes),
    facts: { listens, used, takes: [address], passes },
    raw: [rule, cluster],
  };
}

function tunnelItem(rule: TunnelRule): ConfigItem {
  const { rule_id: key, origin, tun, routes, allowed_sources: sources, datagram_context_id: context } = rule;
  const used = originOf(origin);
  const { interface_name: name, prefixes, mtu } = tun;
  const through = [text.through(name, prefixes, routes, mtu)];
  const listening = rule.role.endsWith('LISTENER');
  const at = listening ? `udp ${rule.local_endpoint}` : rule.peer_endpoint;
  const inbound = rule.reality_inbound && text.reality('QUIC', rule.reality_inbound);
  const outbound = rule.reality_outbound;
  return {
    key,
    group: 'tunnels',
    sentence: listening ? text.listener(used, at, through) : text.connector(used, at, through),
    facts: {
      used: say`${used} (${String(context)})`,
      ...(listening ? { listens: [at] } : { passes: [at] }),
      takes: [inbound ?? text.empty],
      keys: listOf(outbound === undefined ? [] : [outbound.public_key, outbound.server_name, outbound.short_id]),
      interface: [`${name}, ${prefixes.join(', ')}, MTU ${mtu}`],
      routes: listOf(routes),
      sources: listOf(sources),
    },
    raw: rule,
  };
}

function upstreamItem(cluster: Cluster): ConfigItem {
  const { name: id, endpoints, server_names: names, enabled, health_check: check } = cluster;
  const checked = check === undefined ? text.unchecked : text.everyMs(check.interval_ms);
  return {
    key: `upstream ${id}`,
    group: 'upstreams',
    sentence: text.upstream({ type: 'l4_upstream', id, name: null }, endpoints, checked, enabled),
    facts: {
      endpoint: listOf(endpoints),
      names: listOf(names),
      checked: [checked],
      connections: [enabled ? text.accepted : text.refused],
    },
    raw: cluster,
  };
}

function certificateItem(certificate: Certificate): ConfigItem {
  const { credential_id: id, server_names: names } = certificate;
  const ref: Part = { type: 'credential', id, name: null };
  return {
    key: `certificate ${id}`,
    group: 'certificates',
    sentence: text.certificate(ref, names),
    facts: { names: listOf(names) },
    raw: certificate,
  };
}

function policyItem(policy: Policy): ConfigItem {
  const { transport, listen_addr: host, listen_port: port, priority_order: order } = policy;
  const listens = formatListener(transport, host, port);
  return {
    key: `policy ${transport} ${formatAddress(host, port)}`,
    group: 'policies',
    sentence: [text.policy(listens, order)],
    facts: { order: listOf(order) },
    raw: policy,
  };
}

const settingsItem = (node: ConfigSnapshot['node']): ConfigItem => ({
  key: 'settings',
  group: 'settings',
  sentence: [text.multiplexes(node.multiplex_port)],
  facts: { multiplex: [text.onPort(node.multiplex_port)] },
  raw: node,
});

export type ItemChange = { readonly item: ConfigItem } & (
  { readonly kind: 'added' | 'gone' } | { readonly kind: 'changed'; readonly facts: readonly ChangedFact[] }
);

interface ChangedFact {
  readonly name: string;
  readonly from: Words;
  readonly to: Words;
}

/** Additions, removals and changes, in this order. */
export function changesOf(before: readonly ConfigItem[], after: readonly ConfigItem[]): readonly ItemChange[] {
  const [old, now] = [byKey(before), byKey(after)];
  return [
    ...after.filter(({ key }) => !old.has(key)).map((item) => ({ kind: 'added', item }) as const),
    ...before.filter(({ key }) => !now.has(key)).map((item) => ({ kind: 'gone', item }) as const),
    ...after.flatMap((item) => {
      const was = old.get(item.key);
      const facts = was === undefined ? [] : changedFacts(was, item);
      return facts.length === 0 ? [] : [{ kind: 'changed', item, facts } as const];
    }),
  ];
}

const byKey = (items: readonly ConfigItem[]): ReadonlyMap<string, ConfigItem> =>
  new Map(items.map((item) => [item.key, item]));

function changedFacts(before: ConfigItem, after: ConfigItem): readonly ChangedFact[] {
  const names = Object.keys({ ...before.facts, ...after.facts }) as Fact[];
  const facts = names.flatMap((fact) => {
    const [from, to] = [before.facts[fact] ?? [text.empty], after.facts[fact] ?? [text.empty]];
    return textOfWords(from) === textOfWords(to) ? [] : [{ name: text.facts[fact], from, to }];
  });
  if (facts.length > 0 || JSON.stringify(before.raw) === JSON.stringify(after.raw)) return facts;
  // Fields that no sentence shows, such as the text of a certificate.
  return [
    {
      name: after.group === 'certificates' ? text.facts.certificate : text.facts.rest,
      from: [text.asBefore],
      to: [text.other],
    },
  ];
}
