/**
 * The transport table: which payload, outer and security a hop may combine, and what follows from them.
 * Implements `docs/contract/domain.md#l4-chain`.
 */
import type { KeyType } from '../credential/credential.js';
import type { IntendedRoute, ListenerKey } from '../listeners/intent.js';
import type { Hop, Outer, Payload, Security } from './chain.js';

export interface Transport {
  readonly payloads: readonly Payload[];
  readonly outer: Outer;
  readonly security: Security;
  /** The server names that a hop may have: exact names and wildcards, only exact names, or none. */
  readonly serverNames: 'patterns' | 'exact' | 'none';
  /** The match kind of the hop's routes; a hop without server names is the default route. */
  readonly matchKind: IntendedRoute['matchKind'];
}

export const transports: readonly Transport[] = [
  { payloads: ['tcp'], outer: 'tcp', security: 'raw', serverNames: 'patterns', matchKind: 'sni' },
  { payloads: ['tcp'], outer: 'tcp', security: 'tls', serverNames: 'patterns', matchKind: 'sni' },
  { payloads: ['tcp'], outer: 'tcp', security: 'reality', serverNames: 'exact', matchKind: 'reality' },
  { payloads: ['tcp', 'udp'], outer: 'quic', security: 'reality', serverNames: 'exact', matchKind: 'reality' },
  { payloads: ['udp'], outer: 'udp', security: 'raw', serverNames: 'none', matchKind: 'default' },
  { payloads: ['udp'], outer: 'udp', security: 'noise', serverNames: 'none', matchKind: 'local_key' },
  { payloads: ['udp'], outer: 'fake_tcp', security: 'raw', serverNames: 'none', matchKind: 'default' },
  { payloads: ['udp'], outer: 'fake_tcp', security: 'noise', serverNames: 'none', matchKind: 'local_key' },
];

/** The row of a hop; undefined for a combination that is not allowed. @param payload undefined when it is not known */
export function transportOf(
  payload: Payload | undefined,
  { outer, security }: Pick<Hop, 'outer' | 'security'>,
): Transport | undefined {
  return transports.find(
    (one) =>
      one.outer === outer && one.security === security && (payload === undefined || one.payloads.includes(payload)),
  );
}

/** All allowed combinations, for a sentence. */
export const allowedCombinations = transports
  .flatMap(({ payloads, outer, security }) =>
    payloads.map((payload) => `payload ${payload} with outer ${outer} and security ${security}`),
  )
  .join('; ');

const keyTypes: { readonly [S in Security]: KeyType | null } = {
  raw: null,
  tls: 'tls_cert',
  reality: 'reality',
  noise: 'x25519',
};

/** The key type that a hop with this security needs; null when it must not have a credential. */
export function keyTypeOf(security: Security): KeyType | null {
  return keyTypes[security];
}

/** The listener of a hop on its node. */
export function listenerOf(hop: Hop): ListenerKey {
  return { transport: listenerTransport(hop), listenAddr: hop.listen_addr, listenPort: hop.listen_port };
}

/** QUIC is udp, FAKE_TCP is tcp. */
export function listenerTransport({ outer }: Pick<Hop, 'outer'>): 'tcp' | 'udp' {
  return outer === 'tcp' || outer === 'fake_tcp' ? 'tcp' : 'udp';
}
