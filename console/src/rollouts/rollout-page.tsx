/** One rollout, live: what it brings, why it stopped, its waves, the nodes of one of them, and the steps one can take. */
import { Alert, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { columnsOf, DataTable } from '../shared/ui/data-table.js';
import { Facts } from '../shared/ui/facts.js';
import { formatCount } from '../shared/ui/format.js';
import { LinkButton, TextLink } from '../shared/ui/links.js';
import { Page } from '../shared/ui/page.js';
import { NotYet } from '../shared/ui/page-skeleton.js';
import { ResourceLink, typeNames } from '../shared/ui/resource-link.js';
import { Section } from '../shared/ui/section.js';
import { Sign } from '../shared/ui/state.js';
import { StateOf } from '../shared/ui/state-of.js';
import { When } from '../shared/ui/when.js';
import { Counts } from './counts.js';
import { rolloutQuery, type Rollout, type RolloutNode } from './rollouts.js';
import { text } from './rollouts.text.js';
import { StepButtons } from './step-buttons.js';
import { nodesIn, waveState } from './steps.js';
import { titleOf } from './title.js';

export function RolloutPage(): ReactNode {
  const { id } = useParams({ from: '/rollouts/$id' });
  const { wave, page = 1 } = useSearch({ from: '/rollouts/$id' });
  const navigate = useNavigate({ from: '/rollouts/$id' });
  const { data: rollout, error, refetch } = useQuery(rolloutQuery(id, wave, page));
  if (rollout === undefined) return <NotYet error={error} refetch={refetch} />;
  const { state, reason, nodes, nodes_total: total } = rollout;
  return (
    <Page
      title={titleOf(rollout)}
      aside={
        <div role="status">
          <StateOf kind="rollout" is={state} />
        </div>
      }
      actions={<StepButtons rollout={rollout} />}
    >
      {reason !== null && (
        <Alert color="red" variant="light" icon={<Sign mood="bad" />} title={text.why}>
          {reason}
        </Alert>
      )}
      <Section title={text.waves}>
        <DataTable
          caption={text.wavesCaption}
          columns={waveColumns}
          rows={rollout.waves.map((_, index) => ({ rollout, index }))}
          rowKey={({ index }) => String(index)}
          empty={null}
        />
      </Section>
      <Section
        title={text.nodesTitle(wave)}
        actions={
          wave !== undefined && (
            <LinkButton variant="default" to="." search={{}} resetScroll={false}>
              {text.allWaves}
            </LinkButton>
          )
        }
      >
        <DataTable
          caption={text.nodesCaption}
          columns={nodeColumns}
          rows={nodes.map((node) => ({ ...node, alone: isAlone(nodes, node) }))}
          rowKey={({ node_id }) => node_id}
          empty={<Text size="sm">{text.noNodes}</Text>}
          paging={{ page, total, onPage: (to) => void navigate({ search: { wave, page: to }, resetScroll: false }) }}
        />
      </Section>
      <Section title={text.details}>
        <What rollout={rollout} />
      </Section>
    </Page>
  );
}

function What({ rollout }: { readonly rollout: Rollout }): ReactNode {
  const { policy, resource, entry_id: entry, failed, lost } = rollout;
  return (
    <Facts
      facts={{
        ...(entry !== null && {
          [typeNames[resource.type] ?? resource.type]: <ResourceLink {...resource} />,
          [text.entry]: (
            <TextLink to="/audit" search={{ entry }}>
              {titleOf(rollout)}
            </TextLink>
          ),
        }),
        [text.policy]: policy.name,
        [text.failed]: text.outOf(failed, policy.max_failed),
        [text.lost]: text.outOf(lost, policy.max_lost),
        [text.started]: <When at={rollout.started_at} />,
        ...(rollout.ended_at !== null && { [text.ended]: <When at={rollout.ended_at} /> }),
      }}
    />
  );
}

interface WaveRow {
  readonly rollout: Rollout;
  readonly index: number;
}

const waveColumns = columnsOf<WaveRow>([
  [
    text.wave,
    ({ index }) => (
      <TextLink to="." search={{ wave: index + 1 }} resetScroll={false}>
        {text.wave} {formatCount(index + 1)}
      </TextLink>
    ),
    { cut: true },
  ],
  [text.state, (row) => <HowFar {...row} />],
  [text.progress, ({ rollout, index }) => countOf(rollout, index), { numeric: true }],
  [text.stand, ({ rollout, index }) => <Counts waves={rollout.waves.slice(index, index + 1)} />],
  [text.started, ({ rollout, index }) => <When at={rollout.waves[index]?.released_at ?? null} />, { minor: true }],
]);

function countOf({ waves }: Rollout, index: number): string {
  const wave = waves[index];
  return wave === undefined ? '' : formatCount(nodesIn(wave.counts));
}

/** With the time that is left, and what happens then. */
function HowFar({ rollout, index }: WaveRow): ReactNode {
  const state = waveState(rollout, index);
  const due = state === 'applying' || state === 'baking' ? rollout.due_at : null;
  const last = index === rollout.waves.length - 1;
  return (
    <Stack gap={0}>
      <StateOf kind="wave" is={state} />
      {due !== null && (
        <Group gap={4} fz="sm" c="dimmed" component="span">
          <When at={due} /> {state === 'applying' ? text.timeout : last ? text.lastBakeEnds : text.bakeEnds}
        </Group>
      )}
    </Stack>
  );
}

type NodeRow = RolloutNode & { readonly alone: boolean };

/** Whether the page has no other node of the unit. Nodes come unit by unit, but a page may cut a unit. */
const isAlone = (nodes: readonly RolloutNode[], { unit }: RolloutNode): boolean =>
  nodes.filter((one) => one.unit === unit).length === 1;

const nodeColumns = columnsOf<NodeRow>([
  [text.node, (row) => <ResourceLink type="node" id={row.node_id} name={row.node_name} />],
  [text.state, (row) => <StateOf kind="rolloutNode" is={row.state} />],
  [text.wave, (row) => formatCount(row.wave), { numeric: true }],
  [text.unit, (row) => (row.alone ? text.alone : text.unitOf(row.unit)), { minor: true }],
  [text.generation, (row) => formatCount(row.generation), { numeric: true, minor: true }],
]);
