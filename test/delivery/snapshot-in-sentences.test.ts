/** Every kind of rule as the console tells it, and what two generations differ in: no value is missed (`docs/contract/console.md#pages`). */
import { describe, expect, test } from 'vitest';
import { changesOf, itemsOf, type NodeOfHop } from '../../console/src/nodes/config-items.js';
import { textOfWords } from '../../console/src/nodes/config-parts.js';
import type { ConfigSnapshot } from '../../console/src/nodes/config-snapshot.js';
import { snapshotToJson } from '../../src/delivery/snapshot-json.js';
import type { NodeSnapshot } from '../../src/domain/snapshot/snapshot.js';
import { empty, whole } from '../support/every-kind-of-rule.js';

const jsonOf = (snapshot: NodeSnapshot): ConfigSnapshot =>
  JSON.parse(JSON.stringify(snapshotToJson(snapshot, Buffer.alloc(32))));
const nobody: NodeOfHop = () => undefined;
const sentences = (snapshot: NodeSnapshot, nodeOfHop = nobody): readonly string[] =>
  itemsOf(jsonOf(snapshot), nodeOfHop).map(({ sentence }) => textOfWords(sentence));

/** As `whole`, with a rule id for each rule. */
const every: NodeSnapshot = {
  ...whole,
  tcp_proxy_rules: whole.tcp_proxy_rules.map((rule, index) => ({ ...rule, rule_id: `tcp ${index}` })),
  udp_rules: whole.udp_rules.map((rule, index) => ({ ...rule, rule_id: `udp ${index}` })),
  quic_rules: whole.quic_rules.map((rule) => ({ ...rule, rule_id: 'quic' })),
  http_proxy_rules: whole.http_proxy_rules.map((rule) => ({ ...rule, rule_id: 'http', upstream_cluster: 'shop' })),
  l3_rules: whole.l3_rules.map((rule, index) => ({ ...rule, rule_id: `l3 ${index}` })),
  upstream_clusters: whole.upstream_clusters.map((one, index) => ({ ...one, name: index === 0 ? 'up' : 'shop' })),
};

describe('a configuration in sentences', () => {
  test('has one for each rule, upstream, certificate, policy and setting', () => {
    expect(sentences(every)).toMatchInlineSnapshot(`
      [
        "Listens on tcp 0.0.0.0:443 for chain Edge, takes REALITY over TCP as a.example (short id 0123), others see target.example:8443, and passes to upstream up over Noise over UDP as b.example.",
        "Listens on tcp 0.0.0.0:443 for chain Edge, takes TLS with certificate cert, and passes to 192.0.2.1:53 over Noise over UDP.",
        "Listens on udp 0.0.0.0:443 for chain Edge, takes REALITY over QUIC as a.example (short id 0123), others see target.example:8443, and passes to 192.0.2.1:53 over Noise over UDP.",
        "Listens on udp 0.0.0.0:443 for chain Edge, takes Noise over UDP, and passes to 192.0.2.1:53 over Noise over UDP.",
        "Listens on udp 0.0.0.0:443 for chain Edge, takes plain UDP, and passes to 192.0.2.1:53 over Noise over UDP.",
        "Listens on tcp 0.0.0.0:443 for chain Edge, takes HTTP for h.example/, and passes to 192.0.2.1:80.",
        "Takes a tunnel of network Edge on udp 0.0.0.0:9, on interface svc0 with 10.1.0.1/32 (MTU 1300), for 10.2.0.0/16.",
        "Dials a tunnel of network Edge at 192.0.2.9:9, on interface svc0 with 10.1.0.1/32 (MTU 1300), for 10.2.0.0/16.",
        "Dials upstream up at 192.0.2.1:80, checked every 10 s.",
        "Holds certificate cert for a.example.",
        "On tcp [::]:443, tries tls first, then raw.",
        "Takes multiplexed connections on tcp port 4443.",
      ]
    `);
  });

  test('names the node of the next hop where it still listens there', () => {
    const { origin } = every.tcp_proxy_rules[1]!;
    const [, tls] = sentences(every, (chainId, index, port) =>
      chainId === origin.resource_id && index === origin.hop_index + 1 && port === 53
        ? { id: 'n2', name: 'edge-2' }
        : undefined,
    );
    expect(tls).toContain('passes to edge-2 (192.0.2.1:53) over Noise over UDP');
  });

  test('is empty of a node that has nothing', () => {
    expect(sentences(empty)).toEqual([]);
  });
});

describe('the difference of two generations', () => {
  const items = (snapshot: unknown) => itemsOf(snapshot as ConfigSnapshot, nobody);

  test('is none for equal ones, whatever their number and checksum', () => {
    const other = { ...jsonOf(every), generation: '9', checksum: 'x' };
    expect(changesOf(items(jsonOf(every)), items(other))).toEqual([]);
  });

  test('tells what was added, what is gone, and what changed from what to what', () => {
    const [first, second] = every.tcp_proxy_rules;
    const before = jsonOf({ ...empty, tcp_proxy_rules: [first!] });
    const changed = { ...first!, listen_port: 8443, server_names: ['b.example'] };
    const after = jsonOf({ ...empty, tcp_proxy_rules: [changed, second!] });
    const told = changesOf(items(before), items(after)).map(({ kind, item, ...rest }) => [
      kind,
      item.key,
      'facts' in rest
        ? rest.facts.map(({ name, from, to }) => `${name}: ${textOfWords(from)} → ${textOfWords(to)}`)
        : [],
    ]);
    expect(told).toMatchInlineSnapshot(`
      [
        [
          "added",
          "tcp 1",
          [],
        ],
        [
          "changed",
          "tcp 0",
          [
            "Listens on: tcp 0.0.0.0:443 → tcp 0.0.0.0:8443",
          ],
        ],
      ]
    `);
    expect(changesOf(items(after), items(before)).map(({ kind }) => kind)).toEqual(['gone', 'changed']);
  });

  test('misses nothing: whichever value changes', () => {
    const before = jsonOf(every);
    const same: string[] = [];
    for (const path of leavesOf(before)) {
      const after = structuredClone(before);
      change(after, path);
      if (changesOf(items(before), items(after)).length === 0) same.push(path.join('.'));
    }
    expect(same).toEqual(['node_id', 'generation', 'checksum']);
  });
});

type Path = readonly (string | number)[];

function leavesOf(value: unknown, path: Path = []): readonly Path[] {
  if (Array.isArray(value)) return value.flatMap((one, index) => leavesOf(one, [...path, index]));
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([name, one]) => leavesOf(one, [...path, name]));
}

function change(root: unknown, path: Path): void {
  const owner = path.slice(0, -1).reduce((value, key) => Reflect.get(value as object, key), root) as object;
  const key = path.at(-1)!;
  const value: unknown = Reflect.get(owner, key);
  Reflect.set(
    owner,
    key,
    typeof value === 'number' ? value + 1 : typeof value === 'boolean' ? !value : `${String(value)}x`,
  );
}
