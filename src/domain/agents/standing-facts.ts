/**
 * The facts that a node's state stands for, to be written again before they expire. They are the events of then, with the
 * times of then: folded once more they change nothing that is shown. Pure; when and by whom they are written is in
 * `src/commands/standing-facts.ts`.
 * Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet`, "what expires never changes what is shown".
 */
import type { AgentEvent } from './facts.js';
import type { NodeAgentFacts } from './node-agent-facts.js';

export interface StandingFact {
  readonly event: AgentEvent;
  /** When it happened, RFC 3339. */
  readonly at: string;
}

/**
 * @param again_at the time now, RFC 3339
 * @returns in the order in which their fold gives `facts`; none for a node whose agent has never connected
 */
export function standingFacts(node_id: string, facts: NodeAgentFacts, again_at: string): readonly StandingFact[] {
  const standing: StandingFact[] = [];
  const { session, applied, rejected } = facts;
  if (session !== undefined) {
    standing.push({
      at: session.at,
      event: {
        type: 'AgentSessionOpened',
        data: {
          node_id,
          session_id: session.id,
          instance_id: session.instance_id,
          agent_version: facts.agent_version ?? '',
          public_ipv4: session.public_ipv4,
          public_ipv6: session.public_ipv6,
          detected_addresses: facts.detected_addresses,
          multiplex: facts.reported_multiplex ?? false,
          multiplex_port: facts.reported_multiplex_port ?? 0,
          again_at,
        },
      },
    });
  }
  const reports: StandingFact[] = [];
  if (applied !== null) {
    const { generation, checksum, duration_ms, at } = applied;
    const data = { node_id, generation, checksum, duration_ms, again_at };
    reports.push({ at, event: { type: 'AgentConfigApplied', data } });
  }
  if (rejected !== null) {
    const { generation, checksum, errors, at } = rejected;
    const data = { node_id, generation, checksum, errors, again_at };
    reports.push({ at, event: { type: 'AgentConfigRejected', data } });
  }
  standing.push(...(rejected?.applied_since === true ? reports.reverse() : reports));
  // After the apply, which ends a conflict.
  if (facts.version_conflict_at !== null) {
    const data = { node_id, reported: facts.version_conflict ?? '', again_at };
    standing.push({ at: facts.version_conflict_at, event: { type: 'AgentVersionConflict', data } });
  }
  if (facts.duplicate_until !== null) {
    const data = { node_id, until: facts.duplicate_until, again_at };
    standing.push({ at: facts.duplicate_until, event: { type: 'AgentDuplicateSeen', data } });
  }
  return standing;
}
