/**
 * The standing facts of a node: the events that its state follows from, which `src/commands/standing-facts.ts` writes again,
 * with their first times, before they expire. Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet`, "what
 * expires never changes what is shown".
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
 * @returns in an order whose fold gives `facts`; none for a node whose agent has never connected
 */
export function standingFacts(node_id: string, facts: NodeAgentFacts, again_at: string): readonly StandingFact[] {
  const { session, applied, rejected, version_conflict_at, duplicate_until } = facts;
  const every = { node_id, again_at };
  const standing: StandingFact[] = [];
  const add = (at: string, event: AgentEvent): number => standing.push({ at, event });
  if (session !== undefined) {
    const { id: session_id, at, instance_id, public_ipv4, public_ipv6 } = session;
    const agent = {
      agent_version: facts.agent_version ?? '',
      detected_addresses: facts.detected_addresses,
      multiplex: facts.reported_multiplex ?? false,
      multiplex_port: facts.reported_multiplex_port ?? 0,
      features: facts.features,
    };
    const data = { ...every, session_id, instance_id, public_ipv4, public_ipv6, ...agent };
    add(at, { type: 'AgentSessionOpened', data });
  }
  const addRejected = (): void => {
    if (rejected === null) return;
    const { generation, checksum, errors, at } = rejected;
    add(at, { type: 'AgentConfigRejected', data: { ...every, generation, checksum, errors } });
  };
  const rejectedFirst = rejected?.applied_since === true;
  if (rejectedFirst) addRejected();
  if (applied !== null) {
    const { generation, checksum, duration_ms, at } = applied;
    add(at, { type: 'AgentConfigApplied', data: { ...every, generation, checksum, duration_ms } });
  }
  if (!rejectedFirst) addRejected();
  if (facts.confirmed !== undefined) {
    const { generation, at } = facts.confirmed;
    add(at, { type: 'AgentConfigConfirmed', data: { ...every, generation } });
  }
  // After the apply, which ends a conflict.
  if (version_conflict_at !== null) {
    const reported = facts.version_conflict ?? '';
    add(version_conflict_at, { type: 'AgentVersionConflict', data: { ...every, reported } });
  }
  if (duplicate_until !== null) {
    add(duplicate_until, { type: 'AgentDuplicateSeen', data: { ...every, until: duplicate_until } });
  }
  return standing;
}
