/** An upper bound of a chain's part of a snapshot. Implements `docs/contract/domain.md#scale-the-model-is-built-for`. */
import { credentialAt } from '../credential/credential.js';
import type { FleetView } from '../resource/fleet-view.js';
import { listBound, ruleBytes, textBound } from '../snapshot/bound.js';
import type { UpstreamTls } from '../upstream/upstream.js';
import { upstreamAt } from '../upstream/upstream.js';
import type { ChainState, Hop } from './chain.js';
import { upstreamOf } from './chain.js';
import { effectiveNames, firstExactName } from './names.js';

/** In bytes; never less than what is sent. */
export function rulesBound(fleet: FleetView, chain: ChainState, nodeId: string): number {
  const { deployed } = chain;
  if (!chain.enabled || deployed === null) return 0;
  const index = deployed.hops.findIndex((candidate) => candidate.node_id === nodeId);
  const upstream = upstreamAt(fleet, upstreamOf(deployed));
  const target = 'endpoint' in deployed.target ? deployed.target : undefined;
  return (
    ruleBytes +
    textBound(chain.name) +
    listeningBound(fleet, deployed.hops[index]) +
    diallingBound(fleet, deployed.hops[index + 1]) +
    listBound(upstream?.server_names) +
    tlsBound(upstream?.tls ?? target?.tls) +
    textBound(upstream?.endpoint) +
    textBound(target?.endpoint)
  );
}

/** Names, which a REALITY rule has twice and a TLS rule once beside its certificate's, short ids, certificate and key. */
function listeningBound(fleet: FleetView, hop: Hop | undefined): number {
  if (hop === undefined) return 0;
  const names = listBound(effectiveNames(fleet, hop));
  const credential = credentialAt(fleet, hop.credential_id);
  if (credential === undefined) return names;
  return (
    2 * names +
    listBound(credential.short_ids) +
    textBound(credential.target_host ?? '') +
    textBound(credential.certificate_pem ?? '') +
    listBound(credential.certificate?.subject_alt_names) +
    // Sealed values are longer than what they seal.
    textBound(credential.private_key?.ct)
  );
}

/** The name, key, pins and short id by which the next hop is dialled. */
function diallingBound(fleet: FleetView, next: Hop | undefined): number {
  if (next === undefined) return 0;
  const short = credentialAt(fleet, next.credential_id)?.short_ids[0];
  return textBound(firstExactName(effectiveNames(fleet, next))) + textBound(short) + textBound(next.dial_addr);
}

function tlsBound(tls: UpstreamTls | undefined): number {
  return textBound(tls?.server_name) + listBound(tls?.spki_pins_sha256);
}
