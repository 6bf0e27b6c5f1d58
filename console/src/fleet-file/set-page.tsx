/** One set: what it owns, what was changed by hand since its last apply, its document, and its release. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { AskFirst } from '../shared/forms/confirm.js';
import { useMay } from '../shared/session.js';
import { actorName } from '../shared/ui/actor.js';
import { Changes } from '../shared/ui/changes.js';
import { sayDone } from '../shared/ui/done.js';
import { Facts } from '../shared/ui/facts.js';
import { formatCount } from '../shared/ui/format.js';
import { TextLink } from '../shared/ui/links.js';
import { Page } from '../shared/ui/page.js';
import { NotYet } from '../shared/ui/page-skeleton.js';
import { ResourceLink, typeNames } from '../shared/ui/resource-link.js';
import { Section } from '../shared/ui/section.js';
import { State } from '../shared/ui/state.js';
import { When } from '../shared/ui/when.js';
import { DownloadButton } from './download.js';
import { driftQuery, releaseSet, setsQuery, type DriftItem } from './fleet-file.js';
import { text } from './fleet-file.text.js';
import { Drift } from './sets.js';

export function SetPage(): ReactNode {
  const { set } = useParams({ from: '/fleet-file/sets/$set' });
  const { data: sets } = useQuery(setsQuery);
  const { data: drift, error, refetch } = useQuery(driftQuery(set));
  const mayEdit = useMay('operator');
  const known = sets?.items.find(({ set: name }) => name === set);
  if (drift === undefined) return <NotYet error={error} refetch={refetch} />;
  return (
    <Page
      title={text.setTitle(set)}
      aside={drift.items.length > 0 && <Drift count={drift.items.length} />}
      actions={
        <>
          <DownloadButton label={text.download} set={set} />
          {mayEdit && <Release set={set} />}
        </>
      }
    >
      {known !== undefined && (
        <Section title={text.details}>
          <Facts
            facts={{
              ...Object.fromEntries(
                Object.entries(known.resources).map(([type, count]) => [typeNames[type] ?? type, formatCount(count)]),
              ),
              [text.appliedAt]: <When at={known.applied_at} />,
              [text.appliedBy]: known.actor && actorName(known.actor),
              [text.sha]: known.document_sha256,
            }}
          />
        </Section>
      )}
      <Section title={text.drift}>
        {drift.items.length === 0 ? (
          <State mood="good">{text.nothingDrifted}</State>
        ) : (
          <Text size="sm">{text.driftMeaning}</Text>
        )}
        {drift.items.map((item) => (
          <Drifted key={`${item.resource.type} ${item.resource.id}`} item={item} />
        ))}
      </Section>
    </Page>
  );
}

function Drifted({ item: { resource, changes } }: { readonly item: DriftItem }): ReactNode {
  const entries = new Set(changes.flatMap(({ entry_id: id }) => id ?? []));
  return (
    <div>
      <Text size="sm" fw={600} component="h3" m={0}>
        {typeNames[resource.type]} <ResourceLink {...resource} />
      </Text>
      <Changes
        changes={changes.map(({ path, applied, now }) => ({ path, before: applied, after: now }))}
        headings={{ before: text.asApplied, after: text.now }}
      />
      {entries.size > 0 && (
        <Text size="sm" c="dimmed">
          {text.changedBy}{' '}
          {[...entries].map((id, index) => (
            <span key={id}>
              {index > 0 && ', '}
              <TextLink to="/audit" search={{ entry: id }}>
                {text.entry}
              </TextLink>
            </span>
          ))}
        </Text>
      )}
    </div>
  );
}

function Release({ set }: { readonly set: string }): ReactNode {
  const navigate = useNavigate();
  const release = async (): Promise<void> => {
    const { data, requestId } = await releaseSet(set);
    const [entry] = data.commands;
    const id = data.commands.length === 1 ? entry?.resource.id : undefined;
    sayDone(text.released(set), id ? { resourceId: id, requestId } : undefined);
    await navigate({ to: '/fleet-file' });
  };
  return (
    <AskFirst
      dialog="release"
      button={{ size: 'xs', color: 'red', variant: 'light' }}
      title={text.releaseTitle(set)}
      action={text.release}
      onConfirm={release}
    >
      {text.releaseMeaning}
    </AskFirst>
  );
}
