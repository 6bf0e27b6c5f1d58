/**
 * The identity of the service: its keys, how many nodes use each, and its rotation in three steps. Implements
 * `docs/contract/rollouts.md#guided-rotation` for people.
 */
import { Button, Checkbox, Code, Group, Progress, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { AskFirst } from '../shared/forms/confirm.js';
import { dashboardQuery } from '../shared/dashboard.js';
import { queryClient } from '../shared/live/queries.js';
import { useMay } from '../shared/session.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { sayDone } from '../shared/ui/done.js';
import { Facts } from '../shared/ui/facts.js';
import { formatCount } from '../shared/ui/format.js';
import { Guide } from '../shared/ui/guide.js';
import { TextLink } from '../shared/ui/links.js';
import { ListTable } from '../shared/ui/list-table.js';
import { Page } from '../shared/ui/page.js';
import { NotYet } from '../shared/ui/page-skeleton.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { Section } from '../shared/ui/section.js';
import { When } from '../shared/ui/when.js';
import { standingOf } from './identity-standing.js';
import { findBehind, identityQuery, retireIdentity, rotateIdentity, type Identity } from './identity.js';
import { text } from './identity.text.js';

export function IdentityPage(): ReactNode {
  const mayRotate = useMay('admin');
  const { data: identity, error, refetch } = useQuery(identityQuery);
  if (identity === undefined) return <NotYet error={error} refetch={refetch} />;
  const { current, next } = identity;
  return (
    <Page title={text.title} line={text.what}>
      <Section title={text.now}>
        <Facts
          facts={{
            [text.current]: <Key {...current} />,
            [text.next]: next === null ? text.noNext : <Key {...next} />,
          }}
        />
      </Section>
      <Section title={text.steps}>
        <Guide
          steps={[
            {
              title: text.make,
              done: next !== null,
              meaning: text.makeMeaning,
              children: mayRotate ? next === null && <Make /> : <Text size="sm">{text.adminsOnly}</Text>,
            },
            {
              title: text.give,
              done: false,
              meaning: text.giveMeaning,
              children: next !== null && <Over identity={identity} since={next.since} />,
            },
            {
              title: text.retire,
              done: false,
              meaning: text.retireMeaning,
              children: mayRotate && next !== null && <Retire />,
            },
          ]}
        />
      </Section>
    </Page>
  );
}

function Key({ public_key: key, since }: Identity['current']): ReactNode {
  return (
    <>
      <Code style={{ overflowWrap: 'anywhere' }}>{key}</Code> {text.since} <When at={since} />
    </>
  );
}

const reread = (): Promise<void> => queryClient.invalidateQueries({ queryKey: ['service'] });

function Make(): ReactNode {
  return (
    <Group>
      <AskFirst
        dialog="rotate"
        button={{ variant: 'filled' }}
        title={text.makeTitle}
        action={text.makeIt}
        mild
        onConfirm={async () => {
          await rotateIdentity();
          await reread();
          sayDone(text.made);
        }}
      >
        {text.makeAsks}
      </AskFirst>
    </Group>
  );
}

/** How many nodes use the new key, live; on request also which do not, which takes a walk over all nodes. */
function Over({ identity, since }: { readonly identity: Identity; readonly since: string }): ReactNode {
  const { data: dashboard } = useQuery(dashboardQuery);
  const [asked, ask] = useState(false);
  if (dashboard === undefined) return null;
  const { total } = dashboard.stats.nodes;
  const { over, old, unproven } = standingOf(identity, total);
  return (
    <Stack gap="xs">
      <Progress
        value={total === 0 ? 0 : (100 * over) / total}
        aria-label={text.over(formatCount(over), formatCount(total))}
      />
      <Text size="sm" aria-live="polite">
        {text.over(formatCount(over), formatCount(total))}
        {old > 0 && `, ${text.old(formatCount(old))}`}
        {unproven > 0 && `, ${text.unproven(formatCount(unproven))}`}
      </Text>
      {asked ? (
        <Behind since={since} />
      ) : (
        over < total && (
          <Group>
            <Button variant="default" onClick={() => ask(true)}>
              {text.find}
            </Button>
          </Group>
        )
      )}
    </Stack>
  );
}

type Node = Awaited<ReturnType<typeof findBehind>>[number];

const columns = columnsOf<Node>([
  [text.node, ({ id, name }) => <ResourceLink type="node" id={id} name={name} />],
  [text.issued, (row) => <When at={row.psk_issued_at} />],
  [
    '',
    ({ id }) => (
      <TextLink to="/nodes/$id/psk" params={{ id }}>
        {text.rotatePsk}
      </TextLink>
    ),
  ],
]);

function Behind({ since }: { readonly since: string }): ReactNode {
  const query = useQuery({
    queryKey: ['node', 'behind identity', since],
    queryFn: async ({ signal }) => ({ items: await findBehind(since, signal) }),
  });
  return (
    <ListTable
      caption={text.behindCaption}
      columns={columns}
      query={query}
      rowKey={({ id }) => id}
      empty={<Text size="sm">{text.allOver}</Text>}
    />
  );
}

function Retire(): ReactNode {
  const [force, setForce] = useState(false);
  return (
    <Group>
      <AskFirst
        dialog="retire"
        title={text.retireTitle}
        action={text.retireIt}
        onClose={() => setForce(false)}
        onConfirm={async () => {
          await retireIdentity(force);
          await reread();
          sayDone(text.retired);
        }}
      >
        <Stack gap="sm">
          {text.retireAsks}
          <Checkbox
            label={text.force}
            checked={force}
            onChange={({ currentTarget }) => setForce(currentTarget.checked)}
          />
        </Stack>
      </AskFirst>
    </Group>
  );
}
