/** One node: what is wrong first, then its configuration, what it carries, what it listens on, its links, its agent. */
import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { useJustMade } from '../shared/just-made.js';
import { useMay } from '../shared/session.js';
import { formatCount, none } from '../shared/ui/format.js';
import { Facts } from '../shared/ui/facts.js';
import { CopyText } from '../shared/ui/copy-text.js';
import { HeldBy } from '../shared/ui/held-by.js';
import { HistorySection } from '../shared/ui/history.js';
import { LinkButton } from '../shared/ui/links.js';
import { Labels } from '../shared/ui/labels.js';
import { StateOf } from '../shared/ui/state-of.js';
import { ResourcePage, resourcePage } from '../shared/ui/resource-page.js';
import { Section } from '../shared/ui/section.js';
import { When } from '../shared/ui/when.js';
import { AgentFacts } from './agent-facts.js';
import { CommandItems, CommandQuestions, Commands } from './commands.js';
import { Diagnostics } from './diagnostics-panel.js';
import { IssuePsk, PskItems } from './issue-psk.js';
import { Links } from './links.js';
import { Listeners } from './listeners.js';
import { Machine } from './machine.js';
import { NodeChains } from './node-chains.js';
import { NodeProblems } from './node-problems.js';
import { nodes, referrersQuery, type CreatedNode, type Node } from './nodes.js';
import { text } from './nodes.text.js';

export const NodePage = resourcePage(nodes, ({ resource: node }) => {
  const { id } = node;
  const { data: referrers } = useQuery(referrersQuery(id));
  const mayOperate = useMay('operator');
  const made = useJustMade<CreatedNode>(id);
  /** The new PSK, while it is shown; `psk` is null if the answer no longer had it. */
  const [issued, setIssued] = useState<{ readonly psk: string | null } | undefined>(made && { psk: made.control_psk });
  return (
    <ResourcePage
      of={nodes}
      resource={node}
      aside={
        <>
          <StateOf kind="node" is={node.status} />
          {node.apply.state !== 'applied' && node.apply.state !== 'none' && (
            <StateOf kind="apply" is={node.apply.state} />
          )}
        </>
      }
      line={<Line node={node} />}
      more={
        <>
          <CommandItems />
          <PskItems id={id} />
        </>
      }
      removeMeaning={text.removeMeaning}
      usedBy={referrers?.items}
      notice={issued !== undefined && <Machine nodeId={id} psk={issued.psk} onKept={() => setIssued(undefined)} />}
    >
      {mayOperate && (
        <>
          <CommandQuestions nodeId={id} />
          <IssuePsk node={node} onIssued={(psk) => setIssued({ psk })} />
        </>
      )}
      <NodeProblems node={node} />
      <HeldBy rolloutId={node.held_by} />
      <NodeChains nodeId={id} />
      <HistorySection type="node" id={id} usual="1h" />
      <Configuration node={node} />
      <Listeners nodeId={id} />
      <Links nodeId={id} />
      <Section title={text.agent}>
        <AgentFacts node={node} />
      </Section>
      <Diagnostics node={node} />
      {mayOperate && <Commands nodeId={id} />}
    </ResourcePage>
  );
});

/** How others reach it, and what it is for. */
function Line({ node }: { readonly node: Node }): ReactNode {
  const address = node.address ?? node.public_ipv4 ?? node.public_ipv6;
  return (
    <>
      {address !== null && <CopyText label={text.address} value={address} />}
      {node.agent_version !== null && <span>{node.agent_version}</span>}
      <Labels labels={node.labels} />
      {node.description !== null && <span>{node.description}</span>}
    </>
  );
}

function Configuration({ node }: { readonly node: Node }): ReactNode {
  const { id, apply, generation, applied_generation: applied } = node;
  const number = (value: number | null): string => (value === null ? none : formatCount(value));
  return (
    <Section
      title={text.configuration}
      actions={
        generation !== null && (
          <LinkButton
            variant="default"
            to="/nodes/$id/config"
            params={{ id }}
            search={applied === null || applied === generation ? {} : { from: applied }}
          >
            {text.showConfig}
          </LinkButton>
        )
      }
    >
      <Facts
        facts={{
          [text.state]: <StateOf kind="apply" is={apply.state} />,
          [text.since]: <When at={apply.at} />,
          [text.running]: number(applied),
          [text.newest]: number(generation),
        }}
      />
    </Section>
  );
}
