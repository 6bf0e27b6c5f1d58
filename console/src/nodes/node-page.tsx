/** One node: its state, what its agent rejected, and what it reports. */
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Facts } from '../shared/ui/facts.js';
import { formatDuration, formatShare } from '../shared/ui/format.js';
import { LinkButton } from '../shared/ui/links.js';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
import { Section } from '../shared/ui/section.js';
import { When } from '../shared/ui/when.js';
import { ApplyState, ListenerCount, NodeStatus } from './node-state.js';
import { nodeQuery } from './nodes.js';
import type { Node } from './nodes.js';
import { text } from './nodes.text.js';

export function NodePage(): ReactNode {
  const { id } = useParams({ from: '/nodes/$id' });
  const { data: node, error, refetch } = useQuery(nodeQuery(id));
  if (node === undefined) return error && <Problem error={error} retry={() => void refetch()} />;
  return (
    <Page
      title={node.name}
      aside={<NodeStatus status={node.status} />}
      actions={
        <LinkButton variant="default" to="/audit" search={{ resource_type: 'node', resource_id: id }}>
          {text.history}
        </LinkButton>
      }
    >
      <Section title={text.agent}>
        <AgentFacts node={node} />
      </Section>
    </Page>
  );
}

function AgentFacts({ node }: { readonly node: Node }): ReactNode {
  return (
    <Facts
      facts={{
        [text.lastSeen]: <When at={node.last_seen_at} />,
        [text.configuration]: <ApplyState state={node.apply.state} />,
        [text.listeners]: <ListenerCount listeners={node.listeners} />,
        [text.agentVersion]: node.agent_version,
        [text.uptime]: node.uptime_seconds === null ? null : formatDuration(node.uptime_seconds),
        [text.cpu]: node.cpu_usage === null ? null : formatShare(node.cpu_usage),
        [text.memory]: node.memory_usage === null ? null : formatShare(node.memory_usage),
        [text.addresses]: node.detected_addresses.join(', ') || null,
      }}
    />
  );
}
