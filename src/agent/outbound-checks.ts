/**
 * The dialling half of a rule, checked: where to, and whether this agent can dial so. Pure.
 * Implements `docs/contract/wire.md`, Outbound.
 */
import { OuterTransport, SecurityLayer } from '../gen/svc/control/v1/transport.js';
import type { Outbound } from '../gen/svc/control/v1/transport.js';
import { unreachable } from '../kernel/errors.js';
import { formatHostPort, parseHostPort } from '../kernel/host-port.js';
import type { Cluster, NextHop } from './plan.js';

/** Takes an error at a field of the rule's resource, as the REST API names it. */
export type Complain = (field: string, message: string) => void;

export interface CheckedOutbound {
  readonly next: NextHop | undefined;
  /** For people: the endpoint, or those of the cluster. */
  readonly shown: string;
  readonly unsupported: string | undefined;
}

/** Checks what a rule dials. `pins` are those of the rule; a cluster that it names has to be in the snapshot. */
export function checkOutbound(
  outbound: Outbound | undefined,
  pins: readonly string[],
  complain: Complain,
  clusters: ReadonlyMap<string, Cluster>,
): CheckedOutbound {
  const unsupported = checkOutboundSecurity(outbound, pins, complain);
  const next = outbound?.next;
  if (next === undefined) {
    complain('target', 'a rule without outbound');
    return { next: undefined, shown: '', unsupported };
  }
  switch (next.$case) {
    case 'upstreamCluster': {
      const cluster = clusters.get(next.value);
      if (cluster === undefined) complain('target.upstream_id', 'the snapshot has no such upstream cluster');
      const shown = (cluster?.endpoints ?? []).map(formatHostPort).join(',');
      return { next: { kind: 'cluster', name: next.value }, shown, unsupported };
    }
    case 'endpoint': {
      const endpoint = parseHostPort(next.value);
      if (endpoint === undefined)
        complain('target', 'expected an outbound endpoint host:port, an IPv6 host in brackets');
      return { next: endpoint && { kind: 'endpoint', endpoint }, shown: next.value, unsupported };
    }
    default:
      return unreachable(next);
  }
}

/** Checks keys and pins; answers what about the outbound this agent can't do. */
function checkOutboundSecurity(
  outbound: Outbound | undefined,
  pins: readonly string[],
  complain: Complain,
): string | undefined {
  if (outbound === undefined) return undefined;
  for (const pin of pins) {
    if (Buffer.from(pin, 'base64').length !== 32) complain('target.tls', 'expected pins of 32 bytes in base64');
  }
  if (outbound.tls) {
    if (pins.length === 0) complain('target.tls', 'upstream TLS without a pin is refused');
    return 'dialling with TLS';
  }
  const { outer, security } = outbound.transportProfile ?? {};
  const reality = outer === OuterTransport.QUIC ? outbound.quicReality : outbound.reality;
  switch (security) {
    case SecurityLayer.REALITY:
      if (reality?.publicKey.length !== 32) complain('security', 'expected a REALITY key of 32 bytes to dial with');
      return 'dialling with REALITY';
    case SecurityLayer.NOISE:
      if (outbound.noisePublicKey.length !== 32) complain('security', 'expected a Noise key of 32 bytes to dial with');
      return 'dialling with Noise';
    case SecurityLayer.RAW:
      return outer === OuterTransport.TCP || outer === OuterTransport.UDP ? undefined : 'dialling over this transport';
    default:
      complain('security', 'an outbound whose profile is unknown');
      return 'this outbound';
  }
}
