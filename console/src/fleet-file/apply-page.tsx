/** A past apply, and how to take it back, which first shows what that would undo. */
import { Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { useAttempt } from '../shared/forms/attempt.js';
import { RolloutChoice, useRollout } from '../shared/forms/rollout-choice.js';
import { queryClient } from '../shared/live/queries.js';
import { useMay } from '../shared/session.js';
import { actorName } from '../shared/ui/actor.js';
import { sayDone } from '../shared/ui/done.js';
import { Facts } from '../shared/ui/facts.js';
import { formatCount } from '../shared/ui/format.js';
import { TextLink } from '../shared/ui/links.js';
import { Page } from '../shared/ui/page.js';
import { NotYet } from '../shared/ui/page-skeleton.js';
import { Problem } from '../shared/ui/problem.js';
import { ResourceChanges } from '../shared/ui/resource-changes.js';
import { Section } from '../shared/ui/section.js';
import { When } from '../shared/ui/when.js';
import { AppliedView } from './applied-view.js';
import { Entries } from './entries.js';
import { applyQuery, revertApply, revertPlanQuery, tryRevertApply } from './fleet-file.js';
import { text } from './fleet-file.text.js';

export function ApplyPage(): ReactNode {
  const { id } = useParams({ from: '/fleet-file/applies/$id' });
  const mayRevert = useMay('operator');
  const { data: apply, error, refetch } = useQuery(applyQuery(id));
  if (apply === undefined) return <NotYet error={error} refetch={refetch} />;
  const { set, reverted_by: revertedBy } = apply;
  return (
    <Page title={text.applyOf(set ?? text.byHand)}>
      <Section title={text.details}>
        <Facts
          facts={{
            [text.appliedAt]: <When at={apply.at} />,
            [text.appliedBy]: actorName(apply.actor),
            [text.set]: set && (
              <TextLink to="/fleet-file/sets/$set" params={{ set }}>
                {set}
              </TextLink>
            ),
            ...(revertedBy !== null && {
              [text.revertedBy]: (
                <TextLink to="/audit" search={{ entry: revertedBy }}>
                  {text.entry}
                </TextLink>
              ),
            }),
          }}
        />
        {mayRevert && revertedBy === null && <Revert id={id} />}
      </Section>
      <AppliedView applied={apply} />
    </Page>
  );
}

function Revert({ id }: { readonly id: string }): ReactNode {
  const [asked, setAsked] = useState(false);
  if (asked) return <RevertPlan id={id} />;
  return (
    <Group>
      <Button variant="default" onClick={() => setAsked(true)}>
        {text.revertAsk}
      </Button>
    </Group>
  );
}

function RevertPlan({ id }: { readonly id: string }): ReactNode {
  const { data: plan, error, refetch } = useQuery(revertPlanQuery(id));
  const rollout = useRollout();
  const navigate = useNavigate();
  const { working, refused, attempt } = useAttempt();
  const revert = (): Promise<void> =>
    attempt(async () => {
      const { rollout_id: started } = await revertApply(id, rollout.query);
      sayDone(text.reverted);
      await queryClient.invalidateQueries({ queryKey: ['fleet'] });
      if (started) await navigate({ to: '/rollouts/$id', params: { id: started } });
    });
  if (plan === undefined || error !== null) return <NotYet error={error} refetch={refetch} />;
  return (
    <Stack gap="sm">
      <Text size="sm">{text.revertMeaning}</Text>
      {plan.commands.map(({ id: entry, changes, changes_total: total }) => (
        <div key={entry}>
          <ResourceChanges changes={changes} />
          {total > changes.length && <Text size="sm">{text.moreChanges(formatCount(total - changes.length))}</Text>}
        </div>
      ))}
      {plan.not_reverted.length > 0 && (
        <div>
          <Text size="sm">{text.notReverted}</Text>
          <Entries entries={plan.not_reverted} />
        </div>
      )}
      <RolloutChoice
        chosen={rollout}
        queryKey={['fleet', 'try', id]}
        tryIt={(query, signal) => tryRevertApply(id, query, signal)}
      />
      {refused !== undefined && <Problem error={refused} />}
      <Group>
        <Button loading={working} onClick={() => void revert()}>
          {text.revert}
        </Button>
      </Group>
    </Stack>
  );
}
