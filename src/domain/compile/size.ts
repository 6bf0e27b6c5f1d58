/**
 * How large a node's snapshot is, and the refusal of a command that makes one too large. A bound that only adds up
 * lengths answers for almost every node; the snapshot itself is measured where the bound alone would refuse.
 * Implements `docs/contract/domain.md#scale-the-model-is-built-for`.
 */
import { limits } from '../../kernel/limits.js';
import type { Fleet } from '../fleet/fleet.js';
import type { Refusal } from '../resource/refusal.js';
import { ruleBytes } from '../snapshot/bound.js';
import { compileNode, contributorsOf } from './compile-node.js';

/** Bytes of the snapshot, never less than what is sent. */
function snapshotSize(fleet: Fleet, nodeId: string): number {
  let bound = ruleBytes;
  for (const { compiled, state } of contributorsOf(fleet, nodeId)) bound += compiled.bound(fleet, state, nodeId);
  if (bound <= limits.fleet.snapshotBytes) return bound;
  // JSON with its field names is larger than the protobuf encoding of the same values.
  return new TextEncoder().encode(JSON.stringify(compileNode(fleet, nodeId))).length;
}

/** The refusal of a command, already applied, that made a touched node's snapshot too large. */
export function oversizedSnapshot(fleet: Fleet, touched: ReadonlySet<string>): Refusal | undefined {
  for (const nodeId of touched) {
    const bytes = snapshotSize(fleet, nodeId);
    if (bytes <= limits.fleet.snapshotBytes) continue;
    const name = fleet.nameOf('node', nodeId) ?? nodeId;
    return {
      code: 'conflict',
      message: `the configuration of node "${name}" would be ${bytes} bytes, more than the ${limits.fleet.snapshotBytes} that one snapshot may have`,
    };
  }
  return undefined;
}
