/** What a node's agent did after a log, computed without a fold: an independent model of the facts. */
import type { AgentEvent } from '../../src/domain/agents/facts.js';
import type { NodeAgentFacts } from '../../src/domain/agents/node-agent-facts.js';
import type { Planned } from './read-side.js';

type FactOf<T extends AgentEvent['type']> = Extract<AgentEvent, { type: T }> & { readonly at: string };

/** The facts that say what a node's agent did, of those in the order of the log. */
interface Standing {
  readonly opened: FactOf<'AgentSessionOpened'> | undefined;
  readonly applied: FactOf<'AgentConfigApplied'> | undefined;
  readonly rejected: FactOf<'AgentConfigRejected'> | undefined;
  /** The applies and the rejects that count. */
  readonly applies: readonly FactOf<'AgentConfigApplied'>[];
  readonly rejects: readonly FactOf<'AgentConfigRejected'>[];
}

type Facts = readonly (AgentEvent & { readonly at: string })[];
const ofType = <T extends AgentEvent['type']>(facts: Facts, type: T): readonly FactOf<T>[] =>
  facts.filter((fact): fact is FactOf<T> => fact.type === type);
const generationOf = (fact: FactOf<'AgentConfigApplied' | 'AgentConfigRejected'>): number => fact.data.generation;
const byGeneration = <F extends FactOf<'AgentConfigApplied' | 'AgentConfigRejected'>>(facts: readonly F[]): F[] =>
  [...facts].sort((a, b) => generationOf(a) - generationOf(b));

/** Of facts that may be late, the newest session by its time, and the highest generations. */
function highestOnes(all: Facts): Standing {
  const isBefore = (a: Facts[number], b: Facts[number]): boolean => all.indexOf(a) < all.indexOf(b);
  // What was reported before a session that the log has already is of another session. Here, no fact says of which.
  const facts = all.filter(
    (fact) => !ofType(all, 'AgentSessionOpened').some((opened) => isBefore(opened, fact) && fact.at < opened.at),
  );
  const everyApply = ofType(facts, 'AgentConfigApplied');
  const highestBefore = (fact: Facts[number]): number =>
    Math.max(0, ...everyApply.filter((apply) => isBefore(apply, fact)).map(generationOf));
  const rejects = ofType(facts, 'AgentConfigRejected').filter((fact) => generationOf(fact) >= highestBefore(fact));
  const standing = rejects.filter(
    (fact) => !everyApply.some((apply) => isBefore(fact, apply) && generationOf(apply) >= generationOf(fact)),
  );
  const byTime = [...ofType(all, 'AgentSessionOpened')].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  return {
    opened: byTime.at(-1),
    applied: byGeneration(everyApply).at(-1),
    rejected: byGeneration(standing).at(-1),
    applies: everyApply.filter((fact) => generationOf(fact) >= highestBefore(fact)),
    rejects,
  };
}

/** What a node's agent did since the node was last created or brought back, computed without a fold. */
export function factsOf(log: readonly Planned[], nodeId: string): NodeAgentFacts {
  const creation = log.findLastIndex(({ events }) =>
    events.some(
      ({ type, data }) =>
        ['NodeCreated', 'NodeRestored'].includes(type) && (data as { node_id: string }).node_id === nodeId,
    ),
  );
  const facts: Facts = log
    .slice(creation)
    .filter(({ stream }) => stream.startsWith('svc-agents-'))
    .map(({ events, at }) => ({ ...(events[0] as AgentEvent), at }))
    .filter(({ data }) => data.node_id === nodeId);
  const { opened, applied, rejected, applies, rejects } = highestOnes(facts);
  const lastReject = rejects.at(-1);
  const appliedSince =
    lastReject !== undefined && applies.some((fact) => facts.indexOf(fact) > facts.indexOf(lastReject));
  const conflict = ofType(facts, 'AgentVersionConflict').at(-1);
  const open = conflict !== undefined && !applies.some((fact) => facts.indexOf(fact) > facts.indexOf(conflict));
  return {
    connected_once: opened !== undefined,
    agent_version: opened?.data.agent_version ?? null,
    detected_addresses: opened?.data.detected_addresses ?? [],
    reported_multiplex: opened?.data.multiplex ?? null,
    reported_multiplex_port: opened?.data.multiplex_port ?? null,
    features: opened?.data.features ?? [],
    ...(opened === undefined ? {} : { session: sessionOf(opened) }),
    applied:
      applied === undefined
        ? null
        : {
            generation: applied.data.generation,
            checksum: applied.data.checksum,
            at: applied.at,
            duration_ms: applied.data.duration_ms,
          },
    rejected:
      rejected === undefined
        ? null
        : {
            generation: rejected.data.generation,
            checksum: rejected.data.checksum,
            at: rejected.at,
            errors: rejected.data.errors,
            ...(appliedSince && { applied_since: true as const }),
          },
    duplicate_until: ofType(facts, 'AgentDuplicateSeen').at(-1)?.data.until ?? null,
    version_conflict_at: open ? conflict.at : null,
    ...(open ? { version_conflict: conflict.data.reported } : {}),
    ...(facts[0] === undefined ? {} : { written_since: facts[0].at }),
  };
}

function sessionOf({ data, at }: FactOf<'AgentSessionOpened'>): NonNullable<NodeAgentFacts['session']> {
  const { session_id: id, instance_id, public_ipv4, public_ipv6 } = data;
  return { id, instance_id, public_ipv4, public_ipv6, at };
}
