/**
 * Checks the rules of a snapshot, of every kind, and brings them into one shape. Rules that this agent cannot run are
 * checked too, and carry the reason why they are left out. Pure. Implements `docs/contract/wire.md#configuration`.
 */
import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import type { ConfigApplyError, RuntimeConfigSnapshot } from '../../gen/svc/control/v1/config.js';
import type { RuntimeRoute } from '../../gen/svc/control/v1/heartbeat.js';
import {
  L3Role,
  TcpProxyMode,
  UdpMode,
  type HttpProxyRule,
  type L3TunnelRule,
  type QuicRule,
  type TcpProxyRule,
  type UdpRule,
} from '../../gen/svc/control/v1/rules.js';
import {
  OuterTransport,
  PayloadProtocol,
  SecurityLayer,
  type RealityInbound,
  type RuleOrigin,
  type TransportProfile,
} from '../../gen/svc/control/v1/transport.js';
import { isHopShortId } from '../../channel/reality/text-forms.js';
import { x25519PairOf, type X25519KeyPair } from '../../kernel/crypto/crypto.js';
import { isPort, parseHostPort } from '../../kernel/host-port.js';
import { limits } from '../../kernel/limits.js';
import { forEach } from '../../kernel/pieces.js';
import { applyError } from './apply-error.js';
import type { ContextOf } from './certificates.js';
import { normalPrefix } from './matches.js';
import { checkOutbound, endpointsText, type ReportError, type Unsupported } from './outbound-checks.js';
import type { Accept, Cluster, EncRule, NamedRule, RealityHop, RelayRoute, Transport } from './plan.js';

/** How many rules are checked before other work may run. */
const rulesPerPiece = 250;

export interface CheckedRule {
  readonly ruleId: string;
  readonly origin: RuleOrigin;
  /** Undefined for a rule without a listening socket: an L3 connector. */
  readonly listener: { readonly transport: Transport; readonly addr: string; readonly port: number } | undefined;
  /** The match of the rule; distinct among the rules of one listener. */
  readonly matches: readonly string[];
  /** True if the rule cannot share its listener. */
  readonly exclusive: boolean;
  readonly routes: readonly RuntimeRoute[];
  /** The rule's part of the listener; undefined for an invalid rule and for one that this agent cannot run. */
  readonly action: RuleAction | undefined;
  readonly unsupported: Unsupported | undefined;
}

/** The part of a listener that one rule adds. */
export type RuleAction =
  /** Serves connections that no name selects. */
  | { readonly kind: 'relay'; readonly route: RelayRoute }
  | { readonly kind: 'names'; readonly names: readonly string[]; readonly rule: NamedRule }
  | { readonly kind: 'enc'; readonly rule: EncRule }
  | { readonly kind: 'http'; readonly host: string; readonly pathPrefix: string; readonly route: RelayRoute };

/** Checks every rule. A rule without an origin is reported by its id. */
export function* checkRules(
  snapshot: RuntimeConfigSnapshot,
  clusters: ReadonlyMap<string, Cluster>,
  contextOf: ContextOf,
  errors: ConfigApplyError[],
): Generator<void, readonly CheckedRule[]> {
  const gateway = snapshot.gateway;
  const ids = new Set<string>();
  const found: CheckedRule[] = [];
  const each = <R extends AnyRule>(
    rules: readonly R[] | undefined,
    check: (rule: R, context: Context) => Checked,
  ): Generator<void, void> =>
    forEach(rules ?? [], rulesPerPiece, (rule) => {
      const { origin, ruleId } = rule;
      if (origin === undefined || ruleId === '' || ids.has(ruleId)) {
        const message = origin === undefined ? 'the rule has no origin' : 'the rule id is empty or not unique';
        errors.push({ resourceType: '', resourceId: ruleId, path: '', message });
        return;
      }
      ids.add(ruleId);
      const reportError: ReportError = (field, message) => errors.push(applyError(origin, field, message));
      const checked = check(rule, { origin, reportError, clusters, contextOf });
      if (checked.listener !== undefined) {
        if (isIP(checked.listener.addr) === 0) reportError('listen_addr', 'expected an IP address');
        if (!isPort(checked.listener.port)) reportError('listen_port', 'expected 1..65535');
      }
      found.push({ unsupported: undefined, exclusive: false, action: undefined, ...checked, ruleId, origin });
    });

  yield* each(gateway?.tcpProxyRules, checkTcp);
  yield* each(gateway?.udpRules, checkUdp);
  yield* each(gateway?.quicRules, checkQuic);
  yield* each(gateway?.httpProxyRules, checkHttp);
  yield* each(snapshot.l3?.rules, checkL3);
  return found;
}

/** The context in which one rule is checked. */
interface Context {
  readonly origin: RuleOrigin;
  readonly reportError: ReportError;
  readonly clusters: ReadonlyMap<string, Cluster>;
  readonly contextOf: ContextOf;
}

type AnyRule = TcpProxyRule | UdpRule | QuicRule | HttpProxyRule | L3TunnelRule;
type Checked = Pick<CheckedRule, 'listener' | 'matches' | 'routes'> & Partial<CheckedRule>;

function checkTcp(rule: TcpProxyRule, { origin, reportError, clusters, contextOf }: Context): Checked {
  const outbound = checkOutbound(rule, 'tcp', reportError, clusters);
  const names = rule.serverNames;
  const route = outbound.next && { origin, next: outbound.next, security: outbound.security };
  const of = (kind: string, values: readonly string[], action: RuleAction | undefined): Checked => ({
    listener: { transport: 'tcp', addr: rule.listenAddr, port: rule.listenPort },
    // Server names must be distinct across all kinds, because only the ClientHello tells the rules apart.
    matches: values.map((name) => (kind === 'default' ? 'default' : `name ${name.toLowerCase()}`)),
    routes: routesOf(origin, rule.transportProfile, kind, values, outbound.nextHopText),
    action,
    unsupported: outbound.unsupported,
  });
  const named = (kind: string, accept: Accept | undefined): Checked => {
    if (names.length === 0) reportError('server_names', 'expected at least one name');
    return of(kind, names, route && accept && { kind: 'names', names, rule: { route, accept } });
  };
  switch (rule.mode) {
    case TcpProxyMode.RAW:
      return names.length > 0 ? named('sni', { kind: 'pass' }) : of('default', [''], route && { kind: 'relay', route });
    case TcpProxyMode.TLS: {
      const made = contextOf(rule.tlsCredentialId);
      if (!made.ok) reportError('credential_id', made.error);
      return named('sni', made.ok ? { kind: 'tls', context: made.value } : undefined);
    }
    case TcpProxyMode.REALITY: {
      const hop = checkReality(rule.reality, reportError);
      return named('reality', hop && { kind: 'reality', hop: { ...hop, ruleId: rule.ruleId } });
    }
    default:
      reportError('security', 'unknown mode');
      return of('default', [], undefined);
  }
}

function checkUdp(rule: UdpRule, { origin, reportError, clusters }: Context): Checked {
  const outbound = checkOutbound(rule, 'udp', reportError, clusters);
  const fakeTcp = rule.transportProfile?.outer === OuterTransport.FAKE_TCP;
  const route = outbound.next && { origin, next: outbound.next, security: outbound.security };
  const checked = {
    listener: { transport: fakeTcp ? 'tcp' : 'udp', addr: rule.listenAddr, port: rule.listenPort },
    exclusive: fakeTcp,
    unsupported: fakeTcp ? { what: 'FAKE_TCP listeners', field: 'outer' } : outbound.unsupported,
  } as const;
  const of = (kind: string, value: string): Pick<Checked, 'matches' | 'routes'> => ({
    matches: [`${kind} ${value}`],
    routes: routesOf(origin, rule.transportProfile, kind, [value], outbound.nextHopText),
  });
  switch (rule.mode) {
    case UdpMode.ENC: {
      const keys = noiseKeys(rule, reportError);
      return {
        ...checked,
        ...of('local_key', rule.noisePublicKey.toString('base64url')),
        action: route && keys && { kind: 'enc', rule: { keys, route } },
      };
    }
    case UdpMode.RAW:
      return { ...checked, ...of('default', ''), action: route && { kind: 'relay', route } };
    default:
      reportError('security', 'unknown mode');
      return { ...checked, ...of('default', '') };
  }
}

function noiseKeys(rule: UdpRule, reportError: ReportError): X25519KeyPair | undefined {
  const keys = rule.noisePrivateKey.length === 32 ? x25519PairOf(rule.noisePrivateKey) : undefined;
  if (keys !== undefined && rule.noisePublicKey.equals(keys.publicKey)) return keys;
  reportError('credential_id', 'expected a private key of 32 bytes, and the matching public key');
  return undefined;
}

function checkQuic(rule: QuicRule, { origin, reportError, clusters }: Context): Checked {
  const payload = rule.transportProfile?.payload === PayloadProtocol.UDP ? 'udp' : 'tcp';
  const outbound = checkOutbound(rule, payload, reportError, clusters);
  checkReality(rule.reality, reportError);
  const streams = rule.maxStreamsPerConnection;
  if (streams < 1 || streams > 65_535) reportError('max_streams', 'expected 1..65535');
  const names = rule.reality?.serverNames ?? [];
  if (names.length === 0) reportError('server_names', 'expected at least one name');
  return {
    listener: { transport: 'udp', addr: rule.listenAddr, port: rule.listenPort },
    matches: names.map((name) => `name ${name}`),
    routes: routesOf(origin, rule.transportProfile, 'reality', names, outbound.nextHopText),
    unsupported: { what: 'QUIC listeners', field: 'outer' },
  };
}

function checkHttp(rule: HttpProxyRule, { origin, reportError, clusters }: Context): Checked {
  const cluster = clusters.get(rule.upstreamCluster);
  if (cluster === undefined) reportError('backend', 'the snapshot has no upstream cluster with this name');
  if (rule.host === '') reportError('host', 'expected a host');
  const next = { kind: 'cluster', name: rule.upstreamCluster } as const;
  const { host, pathPrefix } = rule;
  // The service ends the session of an agent that sends a longer text.
  const matchValue = (host + pathPrefix).slice(0, limits.agent.stringBytes);
  return {
    listener: { transport: 'tcp', addr: rule.listenAddr, port: rule.listenPort },
    matches: [`http ${host.toLowerCase()}${normalPrefix(pathPrefix)}`],
    routes: routesOf(origin, httpProfile, 'default', [matchValue], endpointsText(cluster)),
    action: { kind: 'http', host, pathPrefix, route: { origin, next, security: { kind: 'raw' } } },
  };
}

/** The profile of HTTP routes, which are in the clear. */
const httpProfile: TransportProfile = {
  payload: PayloadProtocol.TCP,
  outer: OuterTransport.TCP,
  security: SecurityLayer.RAW,
};

function checkL3(rule: L3TunnelRule, { origin, reportError }: Context): Checked {
  if (rule.tun === undefined) reportError('tunnels', 'the tunnel has no interface');
  if (rule.datagramContextId < 1) reportError('tunnels', 'expected a context id of at least 1');
  const unsupported = { what: 'L3 tunnels', field: 'tunnels' };
  if (rule.role === L3Role.CONNECTOR) {
    if (parseHostPort(rule.peerEndpoint) === undefined) reportError('tunnels', 'expected a peer endpoint host:port');
    return { listener: undefined, matches: [], routes: [], unsupported };
  }
  if (rule.role !== L3Role.LISTENER) reportError('tunnels', 'unknown role');
  checkReality(rule.realityInbound, reportError);
  const local = parseHostPort(rule.localEndpoint);
  if (local === undefined) reportError('tunnels', 'expected a local endpoint host:port');
  const context = String(rule.datagramContextId);
  return {
    listener: local === undefined ? undefined : { transport: 'udp', addr: local.host, port: local.port },
    matches: [`context ${context}`],
    routes: routesOf(origin, rule.transportProfile, 'l3_context', [context], rule.tun?.interfaceName ?? ''),
    unsupported,
  };
}

/** How far a client's clock may be off, and how long its hello is remembered. */
const maxTimeDiffMs = 120_000;

function checkReality(
  reality: RealityInbound | undefined,
  reportError: ReportError,
): Omit<RealityHop, 'ruleId'> | undefined {
  if (reality?.privateKey.length !== 32) {
    reportError('credential_id', 'expected a REALITY key of 32 bytes');
    return undefined;
  }
  const { privateKey, serverNames, shortIds, targetHost: host, targetPort: port } = reality;
  if (host === '' || !isPort(port)) reportError('credential_id', 'expected a camouflage target host and port');
  if (shortIds.length === 0 || !shortIds.every(isHopShortId))
    reportError('credential_id', 'expected short ids of an even number of at most 16 hexadecimal digits');
  const names = serverNames.map((name) => name.toLowerCase());
  const parts = [privateKey.toString('hex'), names, shortIds, host, port];
  return {
    id: createHash('sha256').update(JSON.stringify(parts)).digest('base64'),
    keys: x25519PairOf(privateKey),
    serverNames: names,
    shortIds,
    target: { host, port },
    maxTimeDiffMs,
  };
}

function routesOf(
  origin: RuleOrigin,
  profile: TransportProfile | undefined,
  matchKind: string,
  values: readonly string[],
  nextHop: string,
): readonly RuntimeRoute[] {
  return values.map((matchValue) => ({
    service: origin.resourceName,
    payload: payloadNames[profile?.payload ?? 0] ?? '',
    outer: outerNames[profile?.outer ?? 0] ?? '',
    security: securityNames[profile?.security ?? 0] ?? '',
    matchKind,
    matchValue,
    nextHop,
    state: '',
  }));
}

/** Names as in the REST API, indexed by the enum's number on the wire. */
const payloadNames = ['', 'tcp', 'udp', 'ip'];
const outerNames = ['', 'tcp', 'udp', 'quic', 'fake_tcp'];
const securityNames = ['', 'raw', 'tls', 'reality', 'noise'];
