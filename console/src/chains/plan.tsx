/** The plan of a deploy for each node, and the deploy itself: it does what was shown, or is refused. */
import { Button, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { useAttempt } from '../shared/forms/attempt.js';
import { RolloutChoice, useRollout } from '../shared/forms/rollout-choice.js';
import { queryClient } from '../shared/live/queries.js';
import { useMay } from '../shared/session.js';
import { columnsOf, DataTable } from '../shared/ui/data-table.js';
import { sayDone } from '../shared/ui/done.js';
import { formatCount } from '../shared/ui/format.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { NotYet } from '../shared/ui/page-skeleton.js';
import { Problem } from '../shared/ui/problem.js';
import { Section } from '../shared/ui/section.js';
import { Warnings } from '../shared/ui/warnings.js';
import { deployChain, planQuery, tryDeploy, type Chain } from './chains.js';
import { text } from './chains.text.js';

export function Plan({ chain }: { readonly chain: Chain }): ReactNode {
  const mayDeploy = useMay('operator');
  const rollout = useRollout();
  const navigate = useNavigate();
  const { working, refused, attempt } = useAttempt();
  const { data: plan, error, refetch } = useQuery(planQuery(chain.id));
  if (chain.status === 'deployed') return null;
  if (chain.status === 'disabled') return <Section title={text.plan}>{text.planDisabled}</Section>;
  const deploy = (): Promise<void> =>
    attempt(async () => {
      try {
        const { data, requestId } = await deployChain(chain.id, plan?.etag ?? null, rollout.query);
        sayDone(text.deployed(chain.name), { resourceId: chain.id, requestId }, data.warnings);
        if (data.rollout_id) await navigate({ to: '/rollouts/$id', params: { id: data.rollout_id } });
      } finally {
        // If it was refused because somebody else changed something, the reader sees that change.
        await queryClient.invalidateQueries({ queryKey: ['l4_chain'] });
      }
    });
  const blocked = plan !== undefined && plan.collisions.length > 0;
  return (
    <Section
      title={text.plan}
      actions={
        mayDeploy && (
          <Button size="xs" loading={working} disabled={plan === undefined || blocked} onClick={() => void deploy()}>
            {text.deploy}
          </Button>
        )
      }
    >
      <Stack gap="sm" mih={120}>
        {refused !== undefined && <Problem error={refused} />}
        {plan === undefined && <NotYet error={error} refetch={refetch} height={120} />}
        {plan !== undefined && <Warnings sentences={plan.collisions} title={text.inTheWay} />}
        {plan !== undefined && <Warnings sentences={plan.warnings} />}
        <Text size="sm">{chain.deployed_at === null ? text.planFirst : text.planNext}</Text>
        {plan !== undefined && <PlannedNodes nodes={plan.nodes} />}
        {plan !== undefined && mayDeploy && !blocked && (
          <RolloutChoice
            chosen={rollout}
            queryKey={['l4_chain', 'try', chain.id]}
            tryIt={(query, signal) => tryDeploy(chain.id, query, signal)}
          />
        )}
      </Stack>
    </Section>
  );
}

type PlannedNode = Schemas['L4ChainPlan']['nodes'][number];

const columns = columnsOf<PlannedNode>([
  [text.node, (row) => <NamedLink type="node" id={row.node_id} />, { cut: true }],
  [text.rulesAdded, (row) => signed('+', row.added.length), { numeric: true }],
  [text.rulesChanged, (row) => signed('~', row.changed.length), { numeric: true }],
  [text.rulesRemoved, (row) => signed('−', row.removed.length), { numeric: true }],
]);

const signed = (sign: string, count: number): string => (count === 0 ? '0' : `${sign}${formatCount(count)}`);

function PlannedNodes({ nodes }: { readonly nodes: readonly PlannedNode[] }): ReactNode {
  return (
    <DataTable
      caption={text.planCaption}
      columns={columns}
      rows={nodes}
      rowKey={({ node_id: id }) => id}
      empty={<Text size="sm">{text.planNothing}</Text>}
    />
  );
}
