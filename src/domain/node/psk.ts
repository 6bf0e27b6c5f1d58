/**
 * The PSKs of a node: which of them authenticate, and the decisions to issue, take back and prove a second one. PSKs arrive
 * sealed (`src/commands/node-psks.ts`). Implements `docs/contract/rollouts.md#guided-rotation`.
 */
import { ok } from '../../kernel/result.js';
import type { FleetView } from '../resource/fleet-view.js';
import { refuse, type Decision } from '../resource/refusal.js';
import { isNewestKey, isServedKey, servedKeys, type ServedKeys } from '../service/served-keys.js';
import type { IssuedPsk, NodeCommand, NodeEvent, NodeState, PskCandidate } from './node.js';

type Of<T extends NodeCommand['type']> = Extract<NodeCommand, { readonly type: T }>;

/** A candidate that authenticates, or would with its identity key; undefined without one. @param now milliseconds since the epoch */
export function unexpiredCandidate({ psk_candidate: candidate }: NodeState, now: number): PskCandidate | undefined {
  return candidate === undefined || Date.parse(candidate.expires_at) <= now ? undefined : candidate;
}

/** The PSKs that authenticate a node, the candidate last. @param now as above */
export function acceptedPsks(keys: ServedKeys, node: NodeState, now: number): readonly IssuedPsk[] {
  return [node.psk, unexpiredCandidate(node, now)].filter(
    (psk) => psk !== null && psk !== undefined && isServedKey(keys, psk.service_public),
  ) as readonly IssuedPsk[];
}

/** The event of a new PSK, unless a rotation has replaced the identity key that it carries: then it is made again. */
export function issued(fleet: FleetView, psk: IssuedPsk, event: NodeEvent): Decision<NodeEvent> {
  if (isNewestKey(servedKeys(fleet), psk.service_public)) return ok([event]);
  return refuse('precondition_failed', 'the identity of the service was rotated meanwhile');
}

export function issueCandidate(
  fleet: FleetView,
  node: NodeState,
  { type: _, id: node_id, ...psk }: Of<'IssueNodePskCandidate'>,
): Decision<NodeEvent> {
  if (node.psk !== null) {
    return issued(fleet, psk, { type: 'NodePskCandidateIssued', data: { node_id, ...psk } });
  }
  return refuse('conflict', `the node "${node.name}" has no PSK, so it gets a first one, without mode=candidate`);
}

export function dropCandidate(node: NodeState, { id: node_id, now }: Of<'DropNodePskCandidate'>): Decision<NodeEvent> {
  const candidate = unexpiredCandidate(node, now);
  if (candidate === undefined) return refuse('not_found', `the node "${node.name}" has no candidate of a PSK`);
  return ok([{ type: 'NodePskCandidateDropped', data: { node_id, fingerprint: candidate.fingerprint } }]);
}

/** Decides nothing when it is proven already: two sessions may prove it at once. */
export function proveCandidate(
  fleet: FleetView,
  node: NodeState,
  { id: node_id, fingerprint, now }: Of<'ProveNodePskCandidate'>,
): Decision<NodeEvent> {
  if (node.psk?.fingerprint === fingerprint) return ok([]);
  const candidate = acceptedPsks(servedKeys(fleet), { ...node, psk: null }, now)[0];
  if (candidate?.fingerprint !== fingerprint) {
    return refuse('conflict', `the PSK ${fingerprint} is no candidate of the node "${node.name}" any more`);
  }
  const former = node.psk?.fingerprint ?? null;
  return ok([{ type: 'NodePskCandidateProven', data: { node_id, fingerprint, former } }]);
}
