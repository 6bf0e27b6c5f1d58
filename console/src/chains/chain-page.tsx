/** One chain: the path that traffic takes, live; what is not deployed yet; its deployments; what it carried over time. */
import { List, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Facts } from '../shared/ui/facts.js';
import { HistorySection } from '../shared/ui/history.js';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
import { ResourceActions } from '../shared/ui/resource-actions.js';
import { Section } from '../shared/ui/section.js';
import { When } from '../shared/ui/when.js';
import { ChainPath } from './chain-path.js';
import { HealthState, StatusState } from './chain-states.js';
import { chainQuery, deleteChain } from './chains.js';
import { text } from './chains.text.js';
import { Deployments } from './deployments.js';
import { Plan } from './plan.js';

export function ChainPage(): ReactNode {
  const { id } = useParams({ from: '/chains/$id' });
  const { data: chain, error, refetch } = useQuery(chainQuery(id));
  if (chain === undefined) return error && <Problem error={error} retry={() => void refetch()} />;
  return (
    <Page
      title={chain.name}
      aside={
        <>
          <HealthState health={chain.health} />
          <StatusState status={chain.status} />
        </>
      }
      actions={
        <ResourceActions
          type="l4_chain"
          id={id}
          name={chain.name}
          edit={{ to: '/chains/$id/edit', params: { id } }}
          remove={{ run: () => deleteChain(id), meaning: text.removeMeaning, list: { to: '/chains' } }}
        />
      }
    >
      <Section title={text.path}>
        <Stack gap="sm">
          {chain.health.reasons.length > 0 && (
            <List size="sm">
              {chain.health.reasons.map((reason) => (
                <List.Item key={reason}>{reason}</List.Item>
              ))}
            </List>
          )}
          <ChainPath chain={chain} />
        </Stack>
      </Section>
      <Plan chain={chain} />
      <Deployments chain={chain} />
      <HistorySection type="l4_chain" id={id} />
      <Section title={text.details}>
        <Facts
          facts={{
            [text.payload]: text.payloads[chain.payload],
            [text.description]: chain.description,
            [text.deployedAt]: <When at={chain.deployed_at} />,
            [text.managedBy]: chain.managed_by,
            [text.created]: <When at={chain.created_at} />,
            [text.updated]: <When at={chain.updated_at} />,
          }}
        />
      </Section>
    </Page>
  );
}
