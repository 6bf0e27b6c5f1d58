/**
 * How large a node's snapshot is. A bound that only adds up lengths answers for almost every node; the snapshot itself
 * is measured where the bound alone would refuse (`docs/contract/domain.md`, Scale: 8 MiB a snapshot).
 */
import { limits } from '../../kernel/limits.js';
import type { ChainState, DeployedDefinition } from '../chain/chain.js';
import { upstreamOf } from '../chain/status.js';
import type { Fleet } from '../fleet/fleet.js';
import type { UpstreamTls } from '../upstream/upstream.js';
import { compileNode } from './compile-node.js';

/** Ids, addresses, ports, profiles and field tags of one rule and its cluster, names and lists aside. */
const ruleBytes = 2048;
/** UTF-8 needs at most three bytes for each unit of a string's length. */
const bytesPerUnit = 3;

/** Bytes of the snapshot, never less than what is sent. */
export function snapshotSize(fleet: Fleet, nodeId: string): number {
  const bound = boundOf(fleet, nodeId);
  if (bound <= limits.fleet.snapshotBytes) return bound;
  // JSON with its field names is larger than the protobuf encoding of the same values.
  return new TextEncoder().encode(JSON.stringify(compileNode(fleet, nodeId))).length;
}

function boundOf(fleet: Fleet, nodeId: string): number {
  let bytes = ruleBytes;
  for (const chainId of fleet.deployedOn.get(nodeId)) {
    const chain = fleet.chains.get(chainId);
    if (chain?.enabled === true && chain.deployed !== null) bytes += chainBound(fleet, chain, chain.deployed, nodeId);
  }
  return bytes;
}

function chainBound(fleet: Fleet, chain: ChainState, deployed: DeployedDefinition, nodeId: string): number {
  const hop = deployed.hops.find((candidate) => candidate.node_id === nodeId);
  const upstreamId = upstreamOf(deployed);
  const upstream = upstreamId === undefined ? undefined : fleet.upstreams.get(upstreamId);
  const target = 'endpoint' in deployed.target ? deployed.target : undefined;
  return (
    ruleBytes +
    chain.name.length * bytesPerUnit +
    lengthOf(hop?.server_names) +
    lengthOf(upstream?.server_names) +
    tlsBound(upstream?.tls ?? target?.tls) +
    ((upstream?.endpoint.length ?? 0) + (target?.endpoint.length ?? 0)) * bytesPerUnit
  );
}

function tlsBound(tls: UpstreamTls | undefined): number {
  return tls === undefined ? 0 : tls.server_name.length * bytesPerUnit + lengthOf(tls.spki_pins_sha256);
}

/** Bytes of a list of strings, with a tag and a length for each. */
function lengthOf(list: readonly string[] = []): number {
  return list.reduce((sum, entry) => sum + entry.length * bytesPerUnit + 8, 0);
}
