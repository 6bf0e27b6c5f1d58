/**
 * Checks the dialling half of a rule: the next hop, and whether this agent can dial it as the rule demands. Pure.
 * Implements `Outbound` of `docs/contract/wire.md#configuration`.
 */
import { OuterTransport, SecurityLayer, type Outbound } from '../../gen/svc/control/v1/transport.js';
import { isServerName, isHopShortId } from '../../channel/reality/text-forms.js';
import { unreachable } from '../../kernel/errors.js';
import { formatHostPort, parseHostPort } from '../../kernel/host-port.js';
import type { Cluster, DialSecurity, NextHop } from './plan.js';

/** Reports an error at a field of the rule's resource, named as in the REST API. */
export type ReportError = (field: string, message: string) => void;

/** A feature that this agent cannot run, and the field that asks for it, named as in the REST API. */
export interface Unsupported {
  readonly what: string;
  readonly field: string;
}

interface CheckedOutbound {
  readonly next: NextHop | undefined;
  readonly security: DialSecurity;
  /** The endpoint or the cluster's endpoints, for people. */
  readonly nextHopText: string;
  /** Why this agent cannot dial the next hop. */
  readonly unsupported: Unsupported | undefined;
}

interface DiallingRule {
  readonly ruleId: string;
  readonly outbound: Outbound | undefined;
  /** In base64; missing in a rule that cannot dial with TLS. */
  readonly upstreamTlsSpkiPinsSha256?: readonly string[];
}

/** @param payload what the rule relays, which its outbound must carry */
export function checkOutbound(
  rule: DiallingRule,
  payload: 'tcp' | 'udp',
  reportError: ReportError,
  clusters: ReadonlyMap<string, Cluster>,
): CheckedOutbound {
  const next = rule.outbound?.next;
  // Only a chain's target is a cluster, and no hop comes after it.
  const fieldOf = (field: string): string =>
    next?.$case === 'upstreamCluster' && field.startsWith('next.') ? 'target.upstream_id' : field;
  const checked = checkOutboundSecurity(rule, payload, (field, message) => reportError(fieldOf(field), message));
  const { security } = checked;
  const unsupported = checked.unsupported && { ...checked.unsupported, field: fieldOf(checked.unsupported.field) };
  if (next === undefined) {
    reportError('target', 'the rule has no outbound');
    return { next: undefined, security, nextHopText: '', unsupported };
  }
  switch (next.$case) {
    case 'upstreamCluster': {
      const cluster = clusters.get(next.value);
      if (cluster === undefined)
        reportError('target.upstream_id', 'the snapshot has no upstream cluster with this name');
      return {
        next: { kind: 'cluster', name: next.value },
        security,
        nextHopText: endpointsText(cluster),
        unsupported,
      };
    }
    case 'endpoint': {
      const endpoint = parseHostPort(next.value);
      if (endpoint === undefined)
        reportError('target', 'expected an outbound endpoint host:port, with an IPv6 host in brackets');
      return { next: endpoint && { kind: 'endpoint', endpoint }, security, nextHopText: next.value, unsupported };
    }
    default:
      return unreachable(next);
  }
}

/** The endpoints of a cluster, for people. */
export function endpointsText(cluster: Cluster | undefined): string {
  return (cluster?.endpoints ?? []).map(formatHostPort).join(',');
}

type CheckedSecurity = Pick<CheckedOutbound, 'security' | 'unsupported'>;

const raw: CheckedSecurity = { security: { kind: 'raw' }, unsupported: undefined };
const unsupported = (what: string, field = 'next.security'): CheckedSecurity => ({
  ...raw,
  unsupported: { what, field },
});

/** Checks keys and pins. */
function checkOutboundSecurity(rule: DiallingRule, payload: 'tcp' | 'udp', reportError: ReportError): CheckedSecurity {
  const { ruleId, outbound, upstreamTlsSpkiPinsSha256: pins = [] } = rule;
  if (outbound === undefined) return raw;
  const decoded = pins.map((pin) => Buffer.from(pin, 'base64'));
  if (decoded.some((pin) => pin.length !== 32)) reportError('target.tls', 'expected pins of 32 bytes in base64');
  const { outer, security } = outbound.transportProfile ?? {};
  if ((outer === OuterTransport.TCP && payload === 'udp') || (outer === OuterTransport.UDP && payload === 'tcp'))
    reportError('next.outer', `expected a transport that carries ${payload}`);
  if (outbound.tls || security === SecurityLayer.TLS) {
    if (!outbound.tls || decoded.length === 0) reportError('target.tls', 'upstream TLS needs at least one pin');
    if (outer !== OuterTransport.TCP) reportError('target.tls', 'upstream TLS needs TCP');
    const encoded = new Set(decoded.map((pin) => pin.toString('base64')));
    const tls = { kind: 'tls', ruleId, serverName: outbound.tlsServerName, pins: encoded } as const;
    return { security: tls, unsupported: undefined };
  }
  const reality = outer === OuterTransport.QUIC ? outbound.quicReality : outbound.reality;
  const { noisePublicKey: publicKey } = outbound;
  switch (security) {
    case SecurityLayer.REALITY:
      if (reality?.publicKey.length !== 32 || !isServerName(reality.serverName) || !isHopShortId(reality.shortId)) {
        reportError('next.security', 'expected a REALITY key of 32 bytes, a server name and a short id to dial with');
        return raw;
      }
      return outer === OuterTransport.TCP
        ? { security: { kind: 'reality', access: reality }, unsupported: undefined }
        : unsupported('dialling the next hop, or the target after the last hop, over QUIC', 'next.outer');
    case SecurityLayer.NOISE:
      if (publicKey.length !== 32) reportError('next.security', 'expected a Noise key of 32 bytes to dial with');
      return outer === OuterTransport.UDP
        ? { security: { kind: 'noise', publicKey }, unsupported: undefined }
        : unsupported('dialling over this transport', 'next.outer');
    case SecurityLayer.RAW:
      return outer === OuterTransport.TCP || outer === OuterTransport.UDP
        ? raw
        : unsupported('dialling over this transport', 'next.outer');
    default:
      reportError('next.security', 'the outbound has an unknown security layer');
      return unsupported('this outbound');
  }
}
