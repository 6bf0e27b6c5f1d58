/**
 * Refuses a command that makes a node's snapshot too large. For almost every node an upper bound is enough; the snapshot
 * itself is measured only when the bound exceeds the limit. Implements
 * `docs/contract/domain.md#scale-the-model-is-built-for`.
 */
import { limits } from '../../kernel/limits.js';
import type { Fleet } from '../fleet/fleet.js';
import type { Refusal } from '../resource/refusal.js';
import { ruleBytes } from '../snapshot/bound.js';
import { compileNode, contributorsOf } from './compile-node.js';

/** At least the bytes that are sent. */
function snapshotSize(fleet: Fleet, nodeId: string): number {
  let bound = ruleBytes;
  for (const { compiled, state } of contributorsOf(fleet, nodeId)) bound += compiled.bound(fleet, state, nodeId);
  if (bound <= limits.fleet.snapshotBytes) return bound;
  // JSON with its field names is larger than the protobuf encoding of the same values.
  return new TextEncoder().encode(JSON.stringify(compileNode(fleet, nodeId))).length;
}

const nodesPerPiece = 250;

/** The refusal of an applied command that made the snapshot of a touched node too large. Yields between two pieces. */
export function* oversizedInPieces(fleet: Fleet, touched: ReadonlySet<string>): Generator<void, Refusal | undefined> {
  let measured = 0;
  for (const nodeId of touched) {
    if (measured > 0 && measured % nodesPerPiece === 0) yield;
    measured += 1;
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
