/**
 * The outbound of a hop's rule: the listening side of the next hop, or the chain's target. Implements
 * `docs/contract/domain.md#l4-chain` and `docs/contract/wire.md#configuration`.
 */
import { unreachable } from '../../kernel/errors.js';
import { realityOutbound, spkiPins, x25519Material } from '../credential/material.js';
import { dialEndpoint } from '../node/hops.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { Outbound, TransportProfile } from '../snapshot/snapshot.js';
import type { UpstreamState } from '../upstream/upstream.js';
import type { ChainDefinition, Hop, Payload } from './chain.js';
import { effectiveNames, firstExactName } from './names.js';

const payloads = { tcp: 'TCP', udp: 'UDP' } as const;
const outers = { tcp: 'TCP', udp: 'UDP', quic: 'QUIC', fake_tcp: 'FAKE_TCP' } as const;
const securities = { raw: 'RAW', tls: 'TLS', reality: 'REALITY', noise: 'NOISE' } as const;

export function hopProfile(payload: Payload, hop: Hop): TransportProfile {
  return { payload: payloads[payload], outer: outers[hop.outer], security: securities[hop.security] };
}

export interface Dialled {
  readonly outbound: Outbound;
  /** Of the key that the other side must have, when it is dialled with TLS. */
  readonly pins: readonly string[];
}

const plain = { reality: null, quic_reality: null, tls: false, tls_server_name: '', noise_public_key: null } as const;

const noPins: readonly string[] = [];

/** Undefined while the address of the hop, its credential or a name for it is not known. */
export function outboundToHop(fleet: FleetView, payload: Payload, hop: Hop): Dialled | undefined {
  const endpoint = dialEndpoint(fleet, hop);
  if (endpoint === '') return undefined;
  const raw: Outbound = { next: { kind: 'endpoint', endpoint }, transport_profile: hopProfile(payload, hop), ...plain };
  switch (hop.security) {
    case 'raw':
      return { outbound: raw, pins: [] };
    case 'tls': {
      const [name, pins] = [firstExactName(effectiveNames(fleet, hop)), spkiPins(fleet, hop.credential_id)];
      if (name === undefined || pins.length === 0) return undefined;
      return { outbound: { ...raw, tls: true, tls_server_name: name }, pins };
    }
    case 'reality': {
      const name = firstExactName(effectiveNames(fleet, hop));
      const reality = name === undefined ? undefined : realityOutbound(fleet, hop.credential_id, name);
      if (reality === undefined) return undefined;
      return { outbound: hop.outer === 'quic' ? { ...raw, quic_reality: reality } : { ...raw, reality }, pins: [] };
    }
    case 'noise': {
      const keys = x25519Material(fleet, hop.credential_id);
      return keys === undefined ? undefined : { outbound: { ...raw, noise_public_key: keys.public_key }, pins: [] };
    }
    default:
      return unreachable(hop.security);
  }
}

/** The last hop's outbound: outer is the payload's own transport, security is tls when the target has it, else raw. */
export function outboundToTarget({ target, payload }: ChainDefinition, upstream: UpstreamState | undefined): Dialled {
  const tls = 'endpoint' in target ? target.tls : (upstream?.tls ?? undefined);
  const outbound: Outbound = {
    next:
      'endpoint' in target
        ? { kind: 'endpoint', endpoint: target.endpoint }
        : { kind: 'upstream_cluster', name: target.upstream_id },
    transport_profile: {
      payload: payloads[payload],
      outer: outers[payload],
      security: tls === undefined ? 'RAW' : 'TLS',
    },
    reality: null,
    quic_reality: null,
    tls: tls !== undefined,
    tls_server_name: tls?.server_name ?? '',
    noise_public_key: null,
  };
  return { outbound, pins: tls?.spki_pins_sha256 ?? noPins };
}
