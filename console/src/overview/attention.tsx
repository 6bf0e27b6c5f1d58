/**
 * The verdict, and what needs somebody, worst first: the API's matters, and nothing of the page's own making. All is well when
 * none is a fault, what agents report is of now, and something is deployed.
 */
import { Group, List, Paper, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { formatCount } from '../shared/ui/format.js';
import { TextLink } from '../shared/ui/links.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { Sign, type Mood } from '../shared/ui/state.js';
import { pageOfList } from './matter-page.js';
import type { Matter, Stats } from '../shared/dashboard.js';
import { text } from './overview.text.js';

/** So many resources of a matter are named. */
const named = 5;

const moods: Readonly<Record<Matter['severity'], Mood>> = { down: 'bad', degraded: 'warning', soon: 'busy' };

export function Attention({ stats, stale }: { readonly stats: Stats; readonly stale: boolean }): ReactNode {
  const { matters } = stats;
  const faults = matters.filter(({ severity }) => severity !== 'soon');
  const { mood, words } = verdict(stats, faults, stale);
  return (
    <Paper withBorder p="md" component="section" aria-label={text.state} aria-live="polite">
      <Stack gap="md">
        <Group gap="sm" wrap="nowrap">
          <Sign mood={mood} size={28} />
          <Text fz={20} fw={600} lh={1.3}>
            {words}
          </Text>
        </Group>
        {matters.map((matter) => (
          <OneMatter key={`${matter.kind} ${matter.sentence}`} matter={matter} />
        ))}
      </Stack>
    </Paper>
  );
}

function verdict(
  stats: Stats,
  [worst, ...others]: readonly Matter[],
  stale: boolean,
): { readonly mood: Mood; readonly words: string } {
  if (worst !== undefined) return { mood: moods[worst.severity], words: text.attention(1 + others.length) };
  if (stale) return { mood: 'idle', words: text.stale };
  if (!runsSomething(stats)) return { mood: 'idle', words: text.nothingDeployed };
  return { mood: 'good', words: text.allWell };
}

/** Whether a chain is deployed and enabled. */
export function runsSomething({ l4_chains: { health } }: Stats): boolean {
  return health.ok + health.degraded + health.down + health.unknown > 0;
}

function OneMatter({
  matter: { severity, sentence, count, resources, filter },
}: {
  readonly matter: Matter;
}): ReactNode {
  const page = filter === null ? undefined : pageOfList(filter);
  const shown = resources.slice(0, named);
  const more = count - shown.length;
  return (
    <Group gap="sm" align="flex-start" wrap="nowrap">
      <Group w={28} flex="none" justify="center" pt={3}>
        <Sign mood={moods[severity]} />
      </Group>
      <Stack gap={2}>
        <Text fw={600}>{sentence}</Text>
        <List size="sm" listStyleType="none">
          {shown.map(({ type, id, name, reason }) => (
            <List.Item key={id}>
              <ResourceLink type={type} id={id} name={name} />: {reason}
            </List.Item>
          ))}
          {page !== undefined && (more > 0 || count > 1) && (
            <List.Item>
              <TextLink {...page}>{more > 0 ? text.more(formatCount(more)) : text.showAll}</TextLink>
            </List.Item>
          )}
        </List>
      </Stack>
    </Group>
  );
}
