/**
 * Each rule of a snapshot, of every kind, checked and brought to one shape. Kinds that this agent can't run are checked
 * all the same, and say why they are left out. Pure. Implements `docs/contract/wire.md#configuration`.
 */
import { isIP } from 'node:net';
import type { ConfigApplyError, RuntimeConfigSnapshot } from '../gen/svc/control/v1/config.js';
import type { RuntimeRoute } from '../gen/svc/control/v1/heartbeat.js';
import { L3Role, TcpProxyMode, UdpMode } from '../gen/svc/control/v1/rules.js';
import type { HttpProxyRule, L3TunnelRule, QuicRule, TcpProxyRule, UdpRule } from '../gen/svc/control/v1/rules.js';
import { OuterTransport } from '../gen/svc/control/v1/transport.js';
import type { RealityInbound, RuleOrigin, TransportProfile } from '../gen/svc/control/v1/transport.js';
import { formatHostPort, isPort, parseHostPort } from '../kernel/host-port.js';
import { checkOutbound } from './outbound-checks.js';
import type { Complain } from './outbound-checks.js';
import type { Cluster, NextHop, Transport } from './plan.js';

export interface CheckedRule {
  readonly ruleId: string;
  readonly origin: RuleOrigin;
  /** undefined: holds no socket (an L3 connector). */
  readonly listener: { readonly transport: Transport; readonly addr: string; readonly port: number } | undefined;
  /** Distinct among the rules of one listener. */
  readonly matches: readonly string[];
  /** Shares its listener with nothing. */
  readonly alone: boolean;
  readonly routes: readonly RuntimeRoute[];
  /** What a plain relay dials; undefined where the rule has something else to do. */
  readonly next: NextHop | undefined;
  /** Why this agent can't run the rule. */
  readonly unsupported: string | undefined;
  readonly unsupportedField: string;
}

/** An error at a field of the resource that a rule was made from: a hop of a chain or route, or an L3 network. */
export function applyError(origin: RuleOrigin, field: string, message: string): ConfigApplyError {
  const path =
    origin.resourceType === 'l3_network'
      ? 'tunnels'
      : ownFields.has(field)
        ? field
        : `hops[${origin.hopIndex}].${field}`;
  return { resourceType: origin.resourceType, resourceId: origin.resourceId, path, message: message.slice(0, 500) };
}

/** Fields of a resource itself and not of one of its hops. */
const ownFields: ReadonlySet<string> = new Set(['target', 'target.upstream_id', 'target.tls', 'backend', 'host']);

/** Checks every rule. A rule whose origin is missing is reported by its id. */
export function checkRules(
  snapshot: RuntimeConfigSnapshot,
  clusters: ReadonlyMap<string, Cluster>,
  errors: ConfigApplyError[],
): readonly CheckedRule[] {
  const gateway = snapshot.gateway;
  const credentials = new Set((gateway?.tls?.certificates ?? []).map(({ credentialId }) => credentialId));
  const ids = new Set<string>();
  const each = <R extends AnyRule>(
    rules: readonly R[] | undefined,
    check: (rule: R, origin: RuleOrigin, complain: Complain) => Checked,
  ): CheckedRule[] =>
    (rules ?? []).flatMap((rule) => {
      const { origin, ruleId } = rule;
      if (origin === undefined || ruleId === '' || ids.has(ruleId)) {
        const message = origin === undefined ? 'a rule without origin' : 'a rule whose id is empty or not the only one';
        errors.push({ resourceType: '', resourceId: ruleId, path: '', message });
        return [];
      }
      ids.add(ruleId);
      const complain: Complain = (field, message) => errors.push(applyError(origin, field, message));
      const checked = check(rule, origin, complain);
      if (checked.listener !== undefined) {
        if (isIP(checked.listener.addr) === 0) complain('listen_addr', 'expected an IP address');
        if (!isPort(checked.listener.port)) complain('listen_port', 'expected 1..65535');
      }
      return [
        {
          unsupported: undefined,
          unsupportedField: 'security',
          alone: false,
          next: undefined,
          ...checked,
          ruleId,
          origin,
        },
      ];
    });

  return [
    ...each(gateway?.tcpProxyRules, (rule, origin, complain) =>
      checkTcp(rule, origin, complain, clusters, credentials),
    ),
    ...each(gateway?.udpRules, (rule, origin, complain) => checkUdp(rule, origin, complain, clusters)),
    ...each(gateway?.quicRules, (rule, origin, complain) => checkQuic(rule, origin, complain, clusters)),
    ...each(gateway?.httpProxyRules, (rule, origin, complain) => checkHttp(rule, origin, complain, clusters)),
    ...each(snapshot.l3?.rules, checkL3),
  ];
}

type AnyRule = TcpProxyRule | UdpRule | QuicRule | HttpProxyRule | L3TunnelRule;
type Checked = Pick<CheckedRule, 'listener' | 'matches' | 'routes'> & Partial<CheckedRule>;

function checkTcp(
  rule: TcpProxyRule,
  origin: RuleOrigin,
  complain: Complain,
  clusters: ReadonlyMap<string, Cluster>,
  credentials: ReadonlySet<string>,
): Checked {
  const outbound = checkOutbound(rule.outbound, rule.upstreamTlsSpkiPinsSha256, complain, clusters);
  const names = rule.serverNames;
  let kind = 'sni';
  let unsupported: string | undefined;
  switch (rule.mode) {
    case TcpProxyMode.RAW:
      if (names.length === 0) kind = 'default';
      else unsupported = 'reading server names from a ClientHello';
      break;
    case TcpProxyMode.TLS:
      unsupported = 'TLS listeners';
      if (!credentials.has(rule.tlsCredentialId)) complain('credential_id', 'the snapshot has no such certificate');
      if (names.length === 0) complain('server_names', 'expected at least one name');
      break;
    case TcpProxyMode.REALITY:
      kind = 'reality';
      unsupported = 'REALITY listeners';
      checkReality(rule.reality, complain);
      if (names.length === 0) complain('server_names', 'expected at least one name');
      break;
    default:
      complain('security', 'unknown mode');
      unsupported = 'this mode';
  }
  const values = kind === 'default' ? [''] : names;
  return {
    listener: { transport: 'tcp', addr: rule.listenAddr, port: rule.listenPort },
    // Server names are distinct across kinds: the ClientHello alone tells them apart.
    matches: values.map((name) => (kind === 'default' ? 'default' : `name ${name}`)),
    routes: routesOf(origin, rule.transportProfile, kind, values, outbound.shown),
    next: outbound.next,
    unsupported: unsupported ?? outbound.unsupported,
  };
}

function checkUdp(
  rule: UdpRule,
  origin: RuleOrigin,
  complain: Complain,
  clusters: ReadonlyMap<string, Cluster>,
): Checked {
  const outbound = checkOutbound(rule.outbound, [], complain, clusters);
  const fakeTcp = rule.transportProfile?.outer === OuterTransport.FAKE_TCP;
  let kind = 'default';
  let value = '';
  let unsupported = fakeTcp ? 'FAKE_TCP listeners' : undefined;
  switch (rule.mode) {
    case UdpMode.RAW:
      break;
    case UdpMode.ENC:
      kind = 'local_key';
      value = rule.noisePublicKey.toString('base64url');
      unsupported ??= 'Noise listeners';
      if (rule.noisePrivateKey.length !== 32 || rule.noisePublicKey.length !== 32) {
        complain('credential_id', 'expected keys of 32 bytes');
      }
      break;
    default:
      complain('security', 'unknown mode');
      unsupported ??= 'this mode';
  }
  return {
    listener: { transport: fakeTcp ? 'tcp' : 'udp', addr: rule.listenAddr, port: rule.listenPort },
    matches: [`${kind} ${value}`],
    alone: fakeTcp,
    routes: routesOf(origin, rule.transportProfile, kind, [value], outbound.shown),
    next: outbound.next,
    unsupported: unsupported ?? outbound.unsupported,
  };
}

function checkQuic(
  rule: QuicRule,
  origin: RuleOrigin,
  complain: Complain,
  clusters: ReadonlyMap<string, Cluster>,
): Checked {
  const outbound = checkOutbound(rule.outbound, rule.upstreamTlsSpkiPinsSha256, complain, clusters);
  checkReality(rule.reality, complain);
  const streams = rule.maxStreamsPerConnection;
  if (streams < 1 || streams > 65_535) complain('max_streams', 'expected 1..65535');
  const names = rule.reality?.serverNames ?? [];
  if (names.length === 0) complain('server_names', 'expected at least one name');
  return {
    listener: { transport: 'udp', addr: rule.listenAddr, port: rule.listenPort },
    matches: names.map((name) => `name ${name}`),
    routes: routesOf(origin, rule.transportProfile, 'reality', names, outbound.shown),
    unsupported: 'QUIC listeners',
    unsupportedField: 'outer',
  };
}

function checkHttp(
  rule: HttpProxyRule,
  origin: RuleOrigin,
  complain: Complain,
  clusters: ReadonlyMap<string, Cluster>,
): Checked {
  const cluster = clusters.get(rule.upstreamCluster);
  if (cluster === undefined) complain('backend', 'the snapshot has no such upstream cluster');
  if (rule.host === '') complain('host', 'expected a host');
  const match = rule.host + rule.pathPrefix;
  return {
    listener: { transport: 'tcp', addr: rule.listenAddr, port: rule.listenPort },
    matches: [`http ${match}`],
    routes: routesOf(origin, undefined, 'default', [match], (cluster?.endpoints ?? []).map(formatHostPort).join(',')),
    unsupported: 'HTTP routes',
    unsupportedField: 'listen_port',
  };
}

function checkL3(rule: L3TunnelRule, origin: RuleOrigin, complain: Complain): Checked {
  if (rule.tun === undefined) complain('tunnels', 'a tunnel without interface');
  if (rule.datagramContextId < 1) complain('tunnels', 'expected a context id from 1');
  const unsupported = 'L3 tunnels';
  if (rule.role === L3Role.CONNECTOR) {
    if (parseHostPort(rule.peerEndpoint) === undefined) complain('tunnels', 'expected a peer endpoint host:port');
    return { listener: undefined, matches: [], routes: [], unsupported };
  }
  if (rule.role !== L3Role.LISTENER) complain('tunnels', 'unknown role');
  checkReality(rule.realityInbound, complain);
  const local = parseHostPort(rule.localEndpoint);
  if (local === undefined) complain('tunnels', 'expected a local endpoint host:port');
  const context = String(rule.datagramContextId);
  return {
    listener: local === undefined ? undefined : { transport: 'udp', addr: local.host, port: local.port },
    matches: [`context ${context}`],
    routes: routesOf(origin, rule.transportProfile, 'l3_context', [context], rule.tun?.interfaceName ?? ''),
    unsupported,
  };
}

function checkReality(reality: RealityInbound | undefined, complain: Complain): void {
  if (reality?.privateKey.length !== 32) complain('credential_id', 'expected a REALITY key of 32 bytes');
  if (reality !== undefined && (reality.targetHost === '' || !isPort(reality.targetPort))) {
    complain('credential_id', 'expected a camouflage target host and port');
  }
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
  }));
}

/** By number on the wire, as the REST API shows them. */
const payloadNames = ['', 'tcp', 'udp', 'ip'];
const outerNames = ['', 'tcp', 'udp', 'quic', 'fake_tcp'];
const securityNames = ['', 'raw', 'tls', 'reality', 'noise'];
