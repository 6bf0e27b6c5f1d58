/** The configuration of a node: now or at any generation, alone or as the difference from another. The address says which. */
import { Code, Group, NumberInput, Stack, Text } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { formatCount } from '../shared/ui/format.js';
import { LinkButton } from '../shared/ui/links.js';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
import { resourcePage } from '../shared/ui/resource-page.js';
import { Section } from '../shared/ui/section.js';
import { ConfigDifference } from './config-difference.js';
import { configQuery, nodes } from './nodes.js';
import { text } from './nodes.text.js';
import type { NodeConfigSearch } from './nodes-search.js';

const typingMs = 400;

export const NodeConfigPage = resourcePage(nodes, ({ resource: { id, name, generation } }) => {
  const search = useSearch({ from: '/nodes/$id/config' });
  return (
    <Page
      title={text.configTitle(name)}
      actions={
        <LinkButton variant="default" to="/nodes/$id" params={{ id }}>
          {name}
        </LinkButton>
      }
    >
      <Choice search={search} newest={generation} />
      <Text size="sm" c="dimmed">
        {text.compiledToday}
      </Text>
      {search.from === undefined ? (
        <Snapshot id={id} generation={search.generation} />
      ) : (
        <Comparison id={id} from={search.from} to={search.generation} />
      )}
    </Page>
  );
});

interface ChoiceProps {
  readonly search: NodeConfigSearch;
  readonly newest: number | null;
}

function Choice({ search, newest }: ChoiceProps): ReactNode {
  const navigate = useNavigate({ from: '/nodes/$id/config' });
  const show = useDebouncedCallback((changed: Partial<NodeConfigSearch>) => {
    void navigate({ search: { ...search, ...changed }, replace: true });
  }, typingMs);
  const field = (name: keyof NodeConfigSearch) => ({
    defaultValue: search[name] ?? '',
    min: 0,
    allowDecimal: false,
    w: 200,
    onChange: (typed: number | string) => show({ [name]: typed === '' ? undefined : Number(typed) }),
  });
  return (
    <Group gap="md" align="flex-start">
      <NumberInput
        {...field('generation')}
        label={text.generation}
        description={text.generationHint}
        placeholder={newest === null ? '' : String(newest)}
      />
      <NumberInput {...field('from')} label={text.compareWith} description={text.compareHint} />
    </Group>
  );
}

interface SnapshotProps {
  readonly id: string;
  readonly generation: number | undefined;
}

function Snapshot({ id, generation }: SnapshotProps): ReactNode {
  const { data, error, refetch } = useQuery(configQuery(id, generation));
  if (error !== null) return <Problem error={error} retry={() => void refetch()} />;
  if (data === undefined) return null;
  return (
    <Section title={`${text.generation} ${formatCount(data.generation)}`}>
      <Stack gap="xs">
        <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
          {text.checksum} {data.checksum}
        </Text>
        <Code block tabIndex={0}>
          {JSON.stringify(data.snapshot, null, 2)}
        </Code>
      </Stack>
    </Section>
  );
}

interface ComparisonProps {
  readonly id: string;
  readonly from: number;
  readonly to: number | undefined;
}

function Comparison({ id, from, to }: ComparisonProps): ReactNode {
  const before = useQuery(configQuery(id, from));
  const after = useQuery(configQuery(id, to));
  const failed = [before, after].find(({ error }) => error !== null);
  if (failed?.error) return <Problem error={failed.error} retry={() => void failed.refetch()} />;
  if (before.data === undefined || after.data === undefined) return null;
  return <ConfigDifference before={before.data} after={after.data} />;
}
