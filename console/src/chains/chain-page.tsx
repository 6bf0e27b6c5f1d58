/** One chain: why it does not work; the path that traffic takes, live; what is not deployed yet; its deployments; what it carried. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo, type ReactNode } from 'react';
import { CopyText } from '../shared/ui/copy-text.js';
import { HistorySection } from '../shared/ui/history.js';
import { Details, ResourcePage, resourcePage } from '../shared/ui/resource-page.js';
import { Section } from '../shared/ui/section.js';
import { StateOf } from '../shared/ui/state-of.js';
import { ChainPath, useDeployedPath } from './chain-path.js';
import { HealthState } from './chain-health.js';
import { chains, deploymentsQuery, machineQuery, type Chain } from './chains.js';
import { text } from './chains.text.js';
import { clientAddressOf } from './client-address.js';
import { Deployments } from './deployments.js';
import { Plan } from './plan.js';
import { Why } from './why.js';

export const ChainPage = resourcePage(chains, ({ resource: chain }) => (
  <ResourcePage
    of={chains}
    resource={chain}
    aside={
      <>
        {chain.status !== 'draft' && chain.status !== 'disabled' && <HealthState health={chain.health} />}
        {chain.status !== 'deployed' && <StateOf kind="chain" is={chain.status} />}
      </>
    }
    line={<Line chain={chain} />}
    removeMeaning={text.removeMeaning}
  >
    <Why chain={chain} />
    <Section title={text.path}>
      <ChainPath chain={chain} />
    </Section>
    <Plan chain={chain} />
    <Curves chain={chain} />
    <Deployments chain={chain} />
    <Details resource={chain} facts={{ [text.payload]: text.payloads[chain.payload] }} />
  </ResourcePage>
));

/** What clients dial, if it is known, and what the chain is for. */
function Line({ chain }: { readonly chain: Chain }): ReactNode {
  const first = useDeployedPath(chain)?.hops[0];
  const { data: machine } = useQuery(machineQuery(first?.node_id ?? ''));
  const address = first && machine && clientAddressOf(first, machine);
  return (
    <>
      {address !== undefined && (
        <>
          {text.clientAddress} <CopyText label={text.clientAddress} value={address} />
        </>
      )}
      {chain.description !== null && <Text size="sm">{chain.description}</Text>}
    </>
  );
}

function Curves({ chain: { id } }: { readonly chain: Chain }): ReactNode {
  const { data } = useQuery(deploymentsQuery(id));
  const marks = useMemo(() => (data?.items ?? []).map(({ at }) => ({ at: Date.parse(at) / 1_000 })), [data]);
  return <HistorySection type="l4_chain" id={id} usual="1h" marks={marks} />;
}
