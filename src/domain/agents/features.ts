/**
 * Sentences about agents that cannot run what is needed of them. They are warnings: nothing is refused because of them.
 * `compile/needs.ts` says what a resource needs. Implements `docs/contract/agent-protocol.md#configuration`,
 * "Features".
 */
import { limits } from '../../kernel/limits.js';
import { features, type Feature, type Needs } from '../snapshot/features.js';
import type { NodeAgentFacts } from './node-agent-facts.js';

/** The newest hello of an agent. */
type Agent = Pick<NodeAgentFacts, 'agent_version' | 'features'>;

/** The features that an agent lacks; none while it does not say what it can run. */
export function lacking(agent: Pick<Agent, 'features'>, needed: Iterable<Feature>): readonly Feature[] {
  const lacks: Feature[] = [];
  // A loop, because a change of settings asks about all nodes at once.
  for (const feature of needed) if (!agent.features.includes(feature)) lacks.push(feature);
  return lacks.length === 0 || features.some((one) => agent.features.includes(one)) ? lacks : [];
}

/**
 * One sentence for each node and feature that its agent lacks, at most `limits.rest.warnings`; the last one then counts the rest.
 * @param nameOf of a node
 */
export function warnings(
  needs: Needs,
  nameOf: (nodeId: string) => string,
  agentOf: (nodeId: string) => Agent,
): readonly string[] {
  const sentences: string[] = [];
  let more = 0;
  for (const [nodeId, needed] of needs) {
    const agent = agentOf(nodeId);
    for (const feature of lacking(agent, needed)) {
      if (sentences.length === limits.rest.warnings) more += 1;
      else sentences.push(`${nameOf(nodeId)} runs ${agentWords(agent)}, which cannot run ${feature}`);
    }
  }
  return more === 0 ? sentences : [...sentences.slice(0, -1), `and ${more + 1} more like these`];
}

// Foreign text: it must not break the line or change its direction.
const unsafe = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** `reference-agent 0.2.0`. */
export function agentWords({ agent_version }: Pick<Agent, 'agent_version'>): string {
  const plain = (agent_version ?? '').replace(unsafe, ' ').replace('/', ' ').trim();
  return Array.from(plain).slice(0, limits.rest.agentVersionChars).join('') || 'an agent without a version';
}
