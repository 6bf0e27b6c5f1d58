/** One chain: the path that traffic takes, live; what is not deployed yet; its deployments; what it carried over time. */
import { List, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { CopyText } from '../shared/ui/copy-text.js';
import { HistorySection } from '../shared/ui/history.js';
import { Details, ResourcePage, resourcePage } from '../shared/ui/resource-page.js';
import { Section } from '../shared/ui/section.js';
import { When } from '../shared/ui/when.js';
import { ChainPath } from './chain-path.js';
import { HealthState, StatusState } from './chain-states.js';
import { chains, machineQuery, type Definition } from './chains.js';
import { text } from './chains.text.js';
import { clientAddressOf } from './client-address.js';
import { Deployments } from './deployments.js';
import { Plan } from './plan.js';

/** What clients dial; nothing while it is not known. */
function ClientAddress({ path }: { readonly path: Definition }): ReactNode {
  const [first] = path.hops;
  const { data: machine } = useQuery({ ...machineQuery(first?.node_id ?? ''), enabled: first !== undefined });
  const address = first && machine && clientAddressOf(first, machine);
  return address !== undefined && <CopyText label={text.clientAddress} value={address} />;
}

export const ChainPage = resourcePage(chains, ({ resource: chain }) => (
  <ResourcePage
    of={chains}
    resource={chain}
    aside={
      <>
        <HealthState health={chain.health} />
        <StatusState status={chain.status} />
      </>
    }
    line={<ClientAddress path={chain} />}
    removeMeaning={text.removeMeaning}
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
    <HistorySection type="l4_chain" id={chain.id} />
    <Details
      resource={chain}
      facts={{
        [text.payload]: text.payloads[chain.payload],
        [text.description]: chain.description,
        [text.deployedAt]: <When at={chain.deployed_at} />,
      }}
    />
  </ResourcePage>
));
