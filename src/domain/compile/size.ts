/** How large a node's snapshot is: an upper bound of its encoded bytes, cheap while the node has few chains. */
import { limits } from '../../kernel/limits.js';
import type { Fleet } from '../fleet/fleet.js';
import { compileNode } from './compile-node.js';

/** No rule with its cluster is larger: 64 names of 253 bytes, 64 pins, names, endpoints, and slack. */
const largestRuleBytes = 64 * 255 * 2 + 64 * 48 + 8 * 1024;

/** Bytes of the snapshot, never less than what is sent. */
export function snapshotSize(fleet: Fleet, nodeId: string): number {
  const most = (fleet.deployedOn.get(nodeId).size + 1) * largestRuleBytes;
  // JSON with its field names is larger than the protobuf encoding of the same values.
  return most <= limits.fleet.snapshotBytes
    ? most
    : new TextEncoder().encode(JSON.stringify(compileNode(fleet, nodeId))).length;
}
