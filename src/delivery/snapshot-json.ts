/**
 * A node's snapshot for operators: proto3 JSON with the proto's field names and `"***"` for every secret. The compiler's output
 * already has these names, and placeholders for secrets, which are masked wherever they occur. `src/projections/history/`
 * compiles earlier snapshots. Implements `docs/contract/rest.md#nodes`.
 */
import { compileNode } from '../domain/compile/compile-node.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { ruleKinds, type NodeSnapshot, type Outbound, type Rule, type RuleKind } from '../domain/snapshot/snapshot.js';
import { ServiceError } from '../kernel/errors.js';
import type { NewestSnapshots } from './newest.js';
import { encodeSnapshot } from './encode.js';
import type { SnapshotJson } from './port.js';
import type { SecretOpener } from './secrets.js';
import { stampOf } from './target.js';

const masked = '***';

export interface SnapshotJsonDeps {
  fleet(): Fleet;
  readonly newest: Pick<NewestSnapshots, 'stamp' | 'checkCompilerVersion'>;
  /** Compiles the snapshot at the newest generation up to this one, secrets sealed; undefined if there is none. */
  compileEarlier(nodeId: string, generation: number): Promise<NodeSnapshot | undefined>;
  readonly openSecret: SecretOpener;
}

/** @returns `Delivery.snapshotJson` */
export function createSnapshotJson(
  deps: SnapshotJsonDeps,
): (nodeId: string, generation?: number) => Promise<SnapshotJson | undefined> {
  return async (nodeId, wanted = Number.POSITIVE_INFINITY) => {
    const now = deps.fleet().generationOf(nodeId);
    if (now !== undefined && wanted < now) {
      deps.newest.checkCompilerVersion();
      const snapshot = await deps.compileEarlier(nodeId, wanted);
      return snapshot === undefined ? undefined : earlierJson(snapshot, deps.openSecret);
    }
    const newest = deps.newest.stamp(nodeId);
    if (newest.kind === 'unknown_node') return undefined;
    if (newest.kind === 'withheld') {
      throw new ServiceError(
        'internal',
        'the configuration of this node cannot be compiled; the log of the service says why',
      );
    }
    const { generation, checksum } = newest.stamp;
    const snapshot = snapshotToJson(compileNode(deps.fleet(), nodeId), Buffer.from(checksum, 'hex'));
    return { generation, checksum, snapshot };
  };
}

/** Opens the secrets only to compute the checksum of the bytes that an agent would get. */
function earlierJson(snapshot: NodeSnapshot, openSecret: SecretOpener): SnapshotJson {
  const push = encodeSnapshot(snapshot, openSecret);
  return { ...stampOf(push), snapshot: snapshotToJson(snapshot, push.checksum) };
}

/**
 * Scalars and lists are always present, even with their default; a message that is not set is left out.
 * @internal exported for tests
 */
export function snapshotToJson(snapshot: NodeSnapshot, checksum: Uint8Array): object {
  const lists = ruleKinds.map((kind) => [kind, snapshot[kind].map((rule) => ruleJson(kind, rule))] as const);
  const { l3_rules: l3, ...gatewayRules } = Object.fromEntries(lists);
  const certificates = snapshot.tls_certificates.map(fieldsOf);
  return {
    node_id: snapshot.node_id,
    // proto3 JSON: 64-bit integers are strings.
    generation: String(snapshot.generation),
    checksum: Buffer.from(checksum).toString('base64'),
    gateway: {
      upstream_clusters: snapshot.upstream_clusters.map(fieldsOf),
      ...gatewayRules,
      ...(certificates.length === 0 ? {} : { tls: { certificates } }),
      listener_policies: snapshot.listener_policies,
    },
    l3: { rules: l3 },
    node: snapshot.node,
  };
}

function ruleJson(kind: RuleKind, rule: Rule): object {
  const shown = fieldsOf(rule);
  // A disabled network is in no snapshot.
  if (kind === 'l3_rules') return { ...shown, enabled: true };
  if (!('mode' in rule)) return shown;
  return { ...shown, mode: `${kind === 'udp_rules' ? 'UDP_MODE' : 'TCP_PROXY_MODE'}_${rule.mode}` };
}

/** Names of enum values, by field. */
const prefixes = new Map([
  ['payload', 'PAYLOAD_PROTOCOL_'],
  ['outer', 'OUTER_TRANSPORT_'],
  ['security', 'SECURITY_LAYER_'],
  ['address_family', 'ADDRESS_FAMILY_'],
  ['role', 'L3_ROLE_'],
]);

/** Only the whole snapshot has lists of messages. A loop, because `Object.entries` takes four times as long. */
function fieldsOf(message: object): object {
  const shown: Record<string, unknown> = {};
  for (const name in message) {
    const value: unknown = Reflect.get(message, name);
    if (name === 'next') {
      const next = value as Outbound['next'];
      if (next.kind === 'endpoint') shown['endpoint'] = next.endpoint;
      else shown['upstream_cluster'] = next.name;
    } else if (name.endsWith('public_key')) {
      // proto3 JSON has bytes in base64.
      shown[name] = value === null ? '' : Buffer.from(value as string, 'base64url').toString('base64');
    } else if (value === null) {
      if (name === 'noise_private_key') shown[name] = '';
    } else if (name === 'health_check_interval_ms') {
      shown['health_check'] = { interval_ms: value, path: '' };
    } else if (typeof value === 'object' && !Array.isArray(value)) {
      shown[name] = 'secret' in value ? masked : fieldsOf(value);
    } else {
      const prefix = prefixes.get(name);
      shown[name] = prefix === undefined ? value : `${prefix}${value as string}`;
    }
  }
  return shown;
}
