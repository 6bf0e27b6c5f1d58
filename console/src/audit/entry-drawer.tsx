/** One entry: what changed, and how to undo it. First it shows what an undo would change, or why the service refuses it. */
import { Button, Drawer, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { useAttempt } from '../shared/forms/attempt.js';
import { RolloutChoice, useRollout } from '../shared/forms/rollout-choice.js';
import { fieldWords } from '../shared/audit/field-words.js';
import { entrySentence } from '../shared/audit/entry-words.js';
import { meQuery, useMay } from '../shared/session.js';
import { actorName } from '../shared/ui/actor.js';
import { Pager } from '../shared/ui/data-table.js';
import { sayDone } from '../shared/ui/done.js';
import { Facts } from '../shared/ui/facts.js';
import { TextLink } from '../shared/ui/links.js';
import { NotYet } from '../shared/ui/page-skeleton.js';
import { Problem } from '../shared/ui/problem.js';
import { ResourceChanges } from '../shared/ui/resource-changes.js';
import { ResourceLink, typeNames } from '../shared/ui/resource-link.js';
import { When } from '../shared/ui/when.js';
import { changesQuery, entryQuery, revert, revertPlanQuery, tryRevert, type AuditEntry } from './audit.js';
import { text } from './audit.text.js';
import { Confirmation } from './confirmation.js';

interface EntryDrawerProps {
  /** The id of the entry; undefined: closed. */
  readonly id: string | undefined;
  readonly onClose: () => void;
}

export function EntryDrawer({ id, onClose }: EntryDrawerProps): ReactNode {
  const { data: entry, error, refetch } = useQuery(entryQuery(id ?? ''));
  return (
    <Drawer
      opened={id !== undefined}
      onClose={onClose}
      position="right"
      size="xl"
      title={entry === undefined ? text.entry : entrySentence(entry)}
      closeButtonProps={{ 'aria-label': text.close }}
    >
      {entry === undefined && <NotYet error={error} refetch={refetch} />}
      {entry !== undefined && entry.id === id && <Entry key={entry.id} entry={entry} />}
    </Drawer>
  );
}

function Entry({ entry }: { readonly entry: AuditEntry }): ReactNode {
  const { actor, resource, token, reverts } = entry;
  const { data: me } = useQuery(meQuery);
  // Of the service's own commands, only the join of a machine has a token.
  const tokenType = actor.type === 'system' ? 'join_token' : 'api_token';
  // Only admins see the API tokens of others.
  const seesToken = useMay('admin') || tokenType === 'join_token' || me?.id === actor.id;
  return (
    <Stack>
      <Facts
        facts={{
          [text.at]: <When at={entry.at} />,
          [text.actor]: actorName(actor),
          ...(token !== null && {
            [text.token]: <ResourceLink type={tokenType} id={seesToken ? token.id : null} name={token.name} />,
          }),
          [typeNames[resource.type] ?? text.resource]: <ResourceLink {...resource} />,
          ...(reverts !== null && { [text.isRevert]: <EntryLink id={reverts}>{text.thatEntry}</EntryLink> }),
          [text.request]: entry.request_id,
          [text.position]: entry.position,
        }}
      />
      <Confirmation entry={entry} />
      <AllChanges entry={entry} />
      <Undo entry={entry} />
    </Stack>
  );
}

interface EntryLinkProps {
  readonly id: string;
  readonly children: ReactNode;
}

function EntryLink({ id, children }: EntryLinkProps): ReactNode {
  return (
    <TextLink to="." search={(search) => ({ ...search, entry: id, changes: undefined })}>
      {children}
    </TextLink>
  );
}

/** The changes that the entry holds or, if there are more, all of them page by page. */
function AllChanges({ entry }: { readonly entry: AuditEntry }): ReactNode {
  const { changes, changes_total: total } = entry;
  if (total > changes.length) return <PagedChanges id={entry.id} />;
  const verb = entry.action.split('.')[1];
  return <ResourceChanges changes={verb === 'create' ? changes.filter(isSet) : changes} words={fieldWords} />;
}

/** Fields that a creation left unset are not shown. */
const isSet = ({ after }: AuditEntry['changes'][number]): boolean =>
  after !== null && after !== '' && !(Array.isArray(after) && after.length === 0);

function PagedChanges({ id }: { readonly id: string }): ReactNode {
  const { changes: page = 1 } = useSearch({ from: '/audit' });
  const navigate = useNavigate({ from: '/audit' });
  const { data, error, refetch } = useQuery(changesQuery(id, page));
  if (data === undefined) return <NotYet error={error} refetch={refetch} height={240} />;
  return (
    <div>
      <ResourceChanges changes={data.items} words={fieldWords} />
      <Pager
        page={page}
        total={data.total}
        onPage={(to) => void navigate({ search: (search) => ({ ...search, changes: to }), resetScroll: false })}
      />
    </div>
  );
}

function Undo({ entry }: { readonly entry: AuditEntry }): ReactNode {
  const mayRevert = useMay('operator');
  const [asked, setAsked] = useState(false);
  if (entry.reverted_by !== null) {
    return (
      <Text size="sm">
        {text.revertedBy} <EntryLink id={entry.reverted_by}>{text.thatEntry}</EntryLink>
      </Text>
    );
  }
  if (!entry.revertible) {
    return (
      <Text size="sm" c="dimmed">
        {text.notRevertible}: {entry.not_revertible_because}
      </Text>
    );
  }
  if (!mayRevert) return null;
  if (asked) return <Plan entry={entry} />;
  return (
    <Group>
      <Button variant="default" onClick={() => setAsked(true)}>
        {text.tryRevert}
      </Button>
    </Group>
  );
}

function Plan({ entry }: { readonly entry: AuditEntry }): ReactNode {
  const rollout = useRollout();
  const navigate = useNavigate();
  const { data: plan, error, refetch } = useQuery(revertPlanQuery(entry.id));
  const { working, refused, attempt } = useAttempt();
  const undo = (): Promise<void> =>
    attempt(async () => {
      const { data, requestId } = await revert(entry.id, rollout.query);
      const { id } = entry.resource;
      sayDone(text.done(entry.action), id === null ? undefined : { resourceId: id, requestId });
      if ('rollout_id' in data && typeof data.rollout_id === 'string') {
        await navigate({ to: '/rollouts/$id', params: { id: data.rollout_id } });
      }
    });
  if (error !== null) return <Problem error={error} retry={() => void refetch()} />;
  if (plan === undefined) return null;
  return (
    <Stack gap="sm">
      <Text size="sm">
        {text.wouldChange} {text.wouldDo}
      </Text>
      <ResourceChanges changes={plan} words={fieldWords} />
      <RolloutChoice
        chosen={rollout}
        queryKey={['audit', 'try', entry.id]}
        tryIt={(query, signal) => tryRevert(entry.id, query, signal)}
      />
      {refused !== undefined && <Problem error={refused} />}
      <Group>
        <Button loading={working} onClick={() => void undo()}>
          {text.revert}
        </Button>
      </Group>
    </Stack>
  );
}
