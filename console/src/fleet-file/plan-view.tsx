/** A plan as a difference: each step with its fields before and after, what stands in the way, and the nodes it reaches. */
import { List, Stack, Text } from '@mantine/core';
import { useState, type ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { pageSize } from '../shared/search.js';
import { Changes } from '../shared/ui/changes.js';
import { columnsOf, DataTable, Pager, type Paging } from '../shared/ui/data-table.js';
import { formatCount } from '../shared/ui/format.js';
import { ResourceLink, typeNames } from '../shared/ui/resource-link.js';
import { Section } from '../shared/ui/section.js';
import { State, type Mood } from '../shared/ui/state.js';
import { Warnings } from '../shared/ui/warnings.js';
import type { Plan, Step } from './fleet-file.js';
import { text } from './fleet-file.text.js';

interface PlanViewProps {
  readonly plan: Plan;
  /** The actions that it allows. */
  readonly children: ReactNode;
}

export function PlanView({ plan, children }: PlanViewProps): ReactNode {
  const { steps, nodes, obstacles, warnings, commands } = plan;
  return (
    <Section title={text.planTitle}>
      {obstacles.length > 0 && (
        <div role="alert">
          <State mood="bad">{text.obstacles}</State>
          <List size="sm" pt={4}>
            {obstacles.map((obstacle) => (
              <List.Item key={obstacle}>{obstacle}</List.Item>
            ))}
          </List>
        </div>
      )}
      <Warnings sentences={warnings} />
      {steps.length === 0 ? (
        <State mood="good">{text.nothing}</State>
      ) : (
        <Text size="sm">
          {text.steps(formatCount(steps.length))}
          {obstacles.length === 0 && `, ${text.commands(formatCount(commands))}`}. {text.planMeaning}
        </Text>
      )}
      <Steps steps={steps} />
      {nodes.length > 0 && <Nodes nodes={nodes} />}
      {children}
    </Section>
  );
}

const moods: Readonly<Record<Step['action'], Mood>> = {
  create: 'good',
  update: 'busy',
  rename: 'busy',
  delete: 'bad',
  deploy: 'busy',
  adopt: 'idle',
};

/** By pages: a plan may have thousands. */
function Steps({ steps }: { readonly steps: readonly Step[] }): ReactNode {
  const [page, setPage] = useState(1);
  const shown = steps.slice((page - 1) * pageSize, page * pageSize);
  return <PageOfSteps steps={shown} paging={{ page, total: steps.length, onPage: setPage }} />;
}

interface PageOfStepsProps {
  readonly steps: readonly Step[];
  readonly paging: Paging;
}

export function PageOfSteps({ steps, paging }: PageOfStepsProps): ReactNode {
  return (
    <Stack gap="md">
      {steps.map(({ action, resource, changes }) => (
        <div key={`${action} ${resource.type} ${resource.name}`}>
          <Text size="sm" fw={600} component="h3" m={0}>
            <State mood={moods[action]}>{text.actions[action]}</State> {typeNames[resource.type]}{' '}
            <ResourceLink {...resource} />
          </Text>
          {changes.length > 0 && <Changes changes={changes} />}
        </div>
      ))}
      {paging.total > pageSize && <Pager {...paging} />}
    </Stack>
  );
}

type PlannedNode = Schemas['FleetPlanNode'];

const columns = columnsOf<PlannedNode>([
  [text.node, (row) => <ResourceLink type="node" id={row.node_id} name={row.node_name} />],
  [text.added, ({ added }) => formatCount(added.length), { numeric: true }],
  [text.changed, ({ changed }) => formatCount(changed.length), { numeric: true }],
  [text.removed, ({ removed }) => formatCount(removed.length), { numeric: true }],
]);

function Nodes({ nodes }: { readonly nodes: readonly PlannedNode[] }): ReactNode {
  const [page, setPage] = useState(1);
  return (
    <div>
      <Text size="sm" fw={600} component="h3" m={0}>
        {text.nodes}
      </Text>
      <DataTable
        caption={text.nodesCaption}
        columns={columns}
        rows={nodes.slice((page - 1) * pageSize, page * pageSize)}
        rowKey={({ node_id: id, node_name: name }) => `${id} ${name}`}
        empty={null}
        paging={{ page, total: nodes.length, onPage: setPage }}
      />
    </div>
  );
}
