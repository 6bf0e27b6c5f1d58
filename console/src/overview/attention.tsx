/** The verdict, and what needs somebody by name, worst first. */
import { Group, List, Paper, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { formatCount } from '../shared/ui/format.js';
import { TextLink } from '../shared/ui/links.js';
import { useNow } from '../shared/ui/now.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { FieldLink, ResourceLink } from '../shared/ui/resource-link.js';
import { Sign } from '../shared/ui/state.js';
import type { Mood } from '../shared/ui/state.js';
import { When } from '../shared/ui/when.js';
import { expiringQuery, named, nodesInQuery } from './overview.js';
import type { Stats } from './overview.js';
import { text } from './overview.text.js';

/** Of one node; its page has all. */
const shownErrors = 3;

interface Matter {
  readonly mood: Mood;
  readonly count: number;
  readonly words: (count: string) => string;
  /** By name, where the service can name them. */
  readonly names?: ReactNode;
}

export function Attention({ stats }: { readonly stats: Stats }): ReactNode {
  const { nodes, listeners, credentials, l4_chains: chains } = stats;
  const matters: readonly Matter[] = [
    { mood: 'bad', count: nodes.rejected, words: text.rejected, names: <RejectedNodes /> },
    { mood: 'bad', count: nodes.offline, words: text.offline, names: <OfflineNodes /> },
    { mood: 'bad', count: credentials.expired, words: text.expired },
    { mood: 'warning', count: listeners.missing, words: text.missing, names: <NodesWithMissing /> },
    {
      mood: 'warning',
      count: credentials.expiring_30d,
      words: text.expiring,
      names: <ExpiringCertificates />,
    },
    { mood: 'warning', count: listeners.unexpected, words: text.unexpected },
    { mood: 'busy', count: chains.modified, words: text.modified, names: <ModifiedChains /> },
    { mood: 'idle', count: nodes.pending, words: text.pending, names: <PendingNodes /> },
  ];
  const present = matters.filter(({ count }) => count > 0);
  const urgent = present.filter(({ mood }) => mood === 'bad' || mood === 'warning');
  const [worst] = urgent;
  return (
    <Paper withBorder p="md" component="section" aria-label={text.state} aria-live="polite">
      <Stack gap="md">
        <Group gap="sm" wrap="nowrap">
          <Sign mood={worst?.mood ?? 'good'} size={28} />
          <Text fz={20} fw={600} lh={1.3}>
            {urgent.length === 0 ? text.allWell : text.attention(urgent.length)}
          </Text>
        </Group>
        {present.map(({ mood, count, words, names }) => (
          <Group key={words('')} gap="sm" align="flex-start" wrap="nowrap">
            <Group w={28} flex="none" justify="center" pt={3}>
              <Sign mood={mood} />
            </Group>
            <Stack gap={2}>
              <Text fw={600}>{words(formatCount(count))}</Text>
              {names}
            </Stack>
          </Group>
        ))}
      </Stack>
    </Paper>
  );
}

interface NamedProps {
  readonly total: number;
  readonly more: ReactNode;
  readonly children: ReactNode;
}

/** The first by name, and the way to the rest. */
function Named({ total, more, children }: NamedProps): ReactNode {
  return (
    <List size="sm" listStyleType="none">
      {children}
      {total > named && <List.Item>{more}</List.Item>}
    </List>
  );
}

function RejectedNodes(): ReactNode {
  const { data } = useQuery(nodesInQuery({ apply: 'rejected' }));
  if (data === undefined) return null;
  const more = (
    <TextLink to="/nodes" search={{ apply: 'rejected' }}>
      {text.more(formatCount(data.total - named))}
    </TextLink>
  );
  return (
    <Named total={data.total} more={more}>
      {data.items.map(({ id, name, apply }) => (
        <List.Item key={id}>
          <ResourceLink type="node" id={id} name={name} /> <When at={apply.at} />
          {apply.errors.slice(0, shownErrors).map(({ resource_type, resource_id, path, message }) => (
            <div key={`${resource_id} ${path} ${message}`}>
              <NamedLink type={resource_type} id={resource_id} />{' '}
              <FieldLink type={resource_type} id={resource_id} path={path} />: {message}
            </div>
          ))}
        </List.Item>
      ))}
    </Named>
  );
}

function OfflineNodes(): ReactNode {
  const { data } = useQuery(nodesInQuery({ status: 'offline' }));
  if (data === undefined) return null;
  const more = (
    <TextLink to="/nodes" search={{ status: 'offline' }}>
      {text.more(formatCount(data.total - named))}
    </TextLink>
  );
  return (
    <Named total={data.total} more={more}>
      {data.items.map(({ id, name, last_seen_at: seen }) => (
        <List.Item key={id}>
          <ResourceLink type="node" id={id} name={name} /> {text.lastSeen} <When at={seen} />
        </List.Item>
      ))}
    </Named>
  );
}

function ModifiedChains(): ReactNode {
  return (
    <TextLink to="/chains" search={{ status: 'modified' }} size="sm">
      {text.showAll}
    </TextLink>
  );
}

function PendingNodes(): ReactNode {
  return (
    <TextLink to="/nodes" search={{ status: 'pending' }} size="sm">
      {text.showAll}
    </TextLink>
  );
}

/** Offline ones are named above, and what they miss is no news. */
function NodesWithMissing(): ReactNode {
  const { data } = useQuery(nodesInQuery({ listeners: 'missing', status: 'online' }));
  if (data === undefined || data.total === 0) return null;
  const more = (
    <TextLink to="/nodes" search={{ listeners: 'missing', status: 'online' }}>
      {text.more(formatCount(data.total - named))}
    </TextLink>
  );
  return (
    <Named total={data.total} more={more}>
      {data.items.map(({ id, name, listeners }) => (
        <List.Item key={id}>
          <ResourceLink type="node" id={id} name={name} />{' '}
          {listeners !== null && text.runs(formatCount(listeners.running), formatCount(listeners.intended))}
        </List.Item>
      ))}
    </Named>
  );
}

function ExpiringCertificates(): ReactNode {
  const { data } = useQuery(expiringQuery(useNow()));
  if (data === undefined) return null;
  return (
    <Named total={data.total} more={text.more(formatCount(data.total - named))}>
      {data.items.map(({ id, name, certificate }) => (
        <List.Item key={id}>
          <ResourceLink type="credential" id={id} name={name} /> {text.ends}{' '}
          <When at={certificate?.not_after ?? null} />
        </List.Item>
      ))}
    </Named>
  );
}
