/** One incident: what and why, its resource's curve around that time, and what was changed just before it began. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { serviceNow } from '../shared/api/client.js';
import { entryColumns } from '../shared/audit/entry-sentence.js';
import type { Span } from '../shared/ui/curve.js';
import { Facts } from '../shared/ui/facts.js';
import { HistorySection } from '../shared/ui/history.js';
import { LinkButton } from '../shared/ui/links.js';
import { ListTable } from '../shared/ui/list-table.js';
import { Page } from '../shared/ui/page.js';
import { NotYet } from '../shared/ui/page-skeleton.js';
import { ResourceLink, typeNames } from '../shared/ui/resource-link.js';
import { Section } from '../shared/ui/section.js';
import { StateOf } from '../shared/ui/state-of.js';
import { When } from '../shared/ui/when.js';
import { changesBeforeQuery, incidentQuery, type Incident } from './incidents.js';
import { text } from './incidents.text.js';
import { Lasted, Status, statusWord } from './parts.js';

export function IncidentPage(): ReactNode {
  const { id } = useParams({ from: '/incidents/$id' });
  const { resource_id: resourceId } = useSearch({ from: '/incidents/$id' });
  const { data: incident, error, refetch } = useQuery(incidentQuery(id, resourceId));
  if (incident === undefined) return <NotYet error={error} refetch={refetch} />;
  const { resource, began_at: began, ended_at: ended, reason } = incident;
  const { type } = resource;
  return (
    <Page
      title={`${typeNames[type] ?? type} ${resource.name}: ${statusWord(incident)}`}
      aside={
        <div role="status">
          <StateOf kind="incident" is={ended === null ? 'lasts' : 'ended'} />
        </div>
      }
      actions={
        <LinkButton variant="default" to="/incidents" search={{ resource_id: resource.id }}>
          {text.others}
        </LinkButton>
      }
    >
      <Section title={text.details}>
        {reason !== null && <Text>{reason}</Text>}
        <Facts
          facts={{
            [text.resource]: <ResourceLink {...resource} />,
            [text.status]: <Status incident={incident} />,
            [text.began]: <When at={began} />,
            [text.lasted]: <Lasted incident={incident} />,
            ...(ended !== null && { [text.ended]: <When at={ended} /> }),
          }}
        />
      </Section>
      {type !== 'credential' && (
        <HistorySection
          type={type}
          id={resource.id}
          title={text.trend}
          usual={spanOf(began)}
          marks={[{ at: Date.parse(began) / 1_000 }]}
        />
      )}
      <Before incident={incident} />
    </Page>
  );
}

/** The shortest range that still shows the time before. */
function spanOf(began: string): Span {
  const minutes = (serviceNow() - Date.parse(began)) / 60_000;
  if (minutes < 10) return '15m';
  if (minutes < 45) return '1h';
  return minutes < 20 * 60 ? 'day' : '30d';
}

const columns = entryColumns(text.when, text.entry);

function Before({ incident }: { readonly incident: Incident }): ReactNode {
  return (
    <Section
      title={text.before}
      actions={
        <LinkButton variant="default" to="/audit" search={{ to: incident.began_at }}>
          {text.moreBefore}
        </LinkButton>
      }
    >
      <ListTable
        caption={text.beforeCaption}
        columns={columns}
        query={useQuery(changesBeforeQuery(incident))}
        rowKey={({ id }) => id}
        empty={<Text size="sm">{text.nothingBefore}</Text>}
      />
    </Section>
  );
}
