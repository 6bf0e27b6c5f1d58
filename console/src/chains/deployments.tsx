/** Deployments of a chain: how far each node is with the newest, with what it rejected; earlier ones, and back to one. */
import { Anchor, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Confirm } from '../shared/forms/confirm.js';
import { queryClient } from '../shared/live/queries.js';
import { useMay } from '../shared/session.js';
import { columnsOf, DataTable } from '../shared/ui/data-table.js';
import { useDialog } from '../shared/ui/dialog.js';
import { differencesOf } from '../shared/ui/differences.js';
import { sayDone } from '../shared/ui/done.js';
import { Empty } from '../shared/ui/empty.js';
import { formatCount } from '../shared/ui/format.js';
import { TextLink } from '../shared/ui/links.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { Problem } from '../shared/ui/problem.js';
import { Section } from '../shared/ui/section.js';
import { State, type Mood } from '../shared/ui/state.js';
import { When } from '../shared/ui/when.js';
import { NodeProgress } from './chain-states.js';
import { deploymentsQuery, goBack, type Chain, type Deployment, type DeploymentNode } from './chains.js';
import { text } from './chains.text.js';
import { DefinitionChanges } from './definition-changes.js';

export function Deployments({ chain }: { readonly chain: Chain }): ReactNode {
  const { data, error, refetch } = useQuery(deploymentsQuery(chain.id));
  if (data === undefined) return error && <Problem error={error} retry={() => void refetch()} />;
  const [newest, ...earlier] = data.items;
  if (newest === undefined) return null;
  return (
    <>
      <Newest chain={chain} deployment={newest} />
      <Earlier chain={chain} newest={newest} earlier={earlier} />
    </>
  );
}

function Newest({ chain, deployment }: { readonly chain: Chain; readonly deployment: Deployment }): ReactNode {
  const { nodes, at } = deployment;
  const applied = nodes.filter(({ state }) => state === 'applied').length;
  const says = applied === nodes.length ? text.allApplied : text.under(applied, nodes.length);
  return (
    <Section
      title={text.newest}
      actions={
        <Text size="sm" component="div" role="status">
          <State mood={moodOf(nodes)}>{says}</State> · <When at={at} />
        </Text>
      }
    >
      <DataTable
        caption={text.newestCaption}
        columns={nodeColumns}
        rows={nodes.map((node) => ({ ...node, chain }))}
        rowKey={({ node_id: id }) => id}
        empty={null}
      />
    </Section>
  );
}

/** The worst of the nodes counts. */
function moodOf(nodes: readonly DeploymentNode[]): Mood {
  const states = new Set(nodes.map(({ state }) => state));
  if (states.has('rejected')) return 'bad';
  if (states.has('pending') || states.has('pushed')) return 'busy';
  return states.has('offline') ? 'warning' : 'good';
}

type NodeRow = DeploymentNode & { readonly chain: Chain };

const nodeColumns = columnsOf<NodeRow>([
  [text.node, (row) => <NamedLink type="node" id={row.node_id} />],
  [
    text.progress,
    (row) => (
      <Stack gap={2}>
        <NodeProgress state={row.state} />
        {row.errors.map((error) => (
          <Rejection key={`${error.resource_id} ${error.path}`} chain={row.chain} {...error} />
        ))}
      </Stack>
    ),
  ],
  [text.generation, (row) => formatCount(row.generation), { numeric: true, minor: true }],
]);

type RejectionProps = DeploymentNode['errors'][number] & { readonly chain: Chain };

/** The agent's words, and the way to the field that they are about. */
function Rejection({ chain, resource_id: resourceId, path, message }: RejectionProps): ReactNode {
  const mayEdit = useMay('operator');
  return (
    <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
      {message} {text.at}{' '}
      {mayEdit && resourceId === chain.id ? (
        <TextLink to="/chains/$id/edit" params={{ id: chain.id }} search={{ field: path }}>
          {path}
        </TextLink>
      ) : (
        path
      )}
    </Text>
  );
}

interface EarlierProps {
  readonly chain: Chain;
  readonly newest: Deployment;
  readonly earlier: readonly Deployment[];
}

function Earlier({ chain, newest, earlier }: EarlierProps): ReactNode {
  return (
    <Section title={text.deployments}>
      <DataTable
        caption={text.deploymentsCaption}
        columns={columns}
        rows={earlier.map((deployment) => ({ ...deployment, chain, newest }))}
        rowKey={({ id }) => id}
        empty={<Empty title={text.noDeployments}>{text.noDeploymentsHint}</Empty>}
      />
    </Section>
  );
}

type Row = Deployment & { readonly chain: Chain; readonly newest: Deployment };

const columns = columnsOf<Row>([
  [text.when, (row) => <When at={row.at} />],
  [text.differs, (row) => text.fields(differencesOf(row.newest.definition, row.definition).length), { minor: true }],
  [text.version, (row) => formatCount(row.chain_version), { numeric: true, minor: true }],
  ['', (row) => <GoBack {...row} />],
]);

/** Shows first what it will change: the service would not ask. */
function GoBack({ chain, newest, ...deployment }: Row): ReactNode {
  const mayDeploy = useMay('operator');
  const { opened, open, close } = useDialog(`back-${deployment.id}`);
  const { definition } = deployment;
  if (!mayDeploy || definition === undefined || !chain.enabled) return null;
  const confirm = async (): Promise<void> => {
    try {
      const { data, requestId } = await goBack(chain, definition);
      sayDone(text.wentBack(chain.name), { resourceId: chain.id, requestId }, data.warnings);
    } finally {
      await queryClient.invalidateQueries({ queryKey: ['l4_chain'] });
    }
  };
  const version = formatCount(deployment.chain_version);
  return (
    <>
      <Anchor component="button" size="sm" style={{ whiteSpace: 'nowrap' }} onClick={open}>
        {text.goBack}
      </Anchor>
      <Confirm
        opened={opened}
        title={text.goBackTo(version)}
        action={text.goBack}
        onConfirm={confirm}
        onClose={close}
        mild
        wide
      >
        <Stack gap="sm">
          {text.goBackMeaning}
          <DefinitionChanges
            before={newest.definition}
            after={definition}
            headings={{ before: text.now, after: text.asThen }}
          />
        </Stack>
      </Confirm>
    </>
  );
}
