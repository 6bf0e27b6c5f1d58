/** An upper bound of a chain's part of a snapshot. Implements `docs/contract/domain.md#scale-the-model-is-built-for`. */
import type { FleetView } from '../resource/fleet-view.js';
import { listBound, ruleBytes, textBound } from '../snapshot/bound.js';
import type { UpstreamTls } from '../upstream/upstream.js';
import { upstreamAt } from '../upstream/upstream.js';
import type { ChainState } from './chain.js';
import { upstreamOf } from './chain.js';

/** In bytes; never less than what is sent. */
export function rulesBound(fleet: FleetView, chain: ChainState, nodeId: string): number {
  const { deployed } = chain;
  if (!chain.enabled || deployed === null) return 0;
  const hop = deployed.hops.find((candidate) => candidate.node_id === nodeId);
  const upstream = upstreamAt(fleet, upstreamOf(deployed));
  const target = 'endpoint' in deployed.target ? deployed.target : undefined;
  return (
    ruleBytes +
    textBound(chain.name) +
    listBound(hop?.server_names) +
    listBound(upstream?.server_names) +
    tlsBound(upstream?.tls ?? target?.tls) +
    textBound(upstream?.endpoint) +
    textBound(target?.endpoint)
  );
}

function tlsBound(tls: UpstreamTls | undefined): number {
  return textBound(tls?.server_name) + listBound(tls?.spki_pins_sha256);
}
