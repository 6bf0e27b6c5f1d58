/** The configuration of a node: now or at any generation, alone or as the difference from another. The address says which. */
import { Code, Group, NumberInput, Stack, Tabs, Text } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { formatCount } from '../shared/ui/format.js';
import { LinkButton } from '../shared/ui/links.js';
import { PageSkeleton } from '../shared/ui/page-skeleton.js';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
import { resourcePage } from '../shared/ui/resource-page.js';
import { Section } from '../shared/ui/section.js';
import { ConfigDifference } from './config-difference.js';
import { SaidConfig, SaidDifference } from './config-said.js';
import { configText as text } from './config.text.js';
import { configQuery, nodes, type NodeConfig } from './nodes.js';
import type { NodeConfigSearch } from './nodes-search.js';

const typingMs = 400;

export const NodeConfigPage = resourcePage(nodes, ({ resource: { id, name, generation } }) => {
  const search = useSearch({ from: '/nodes/$id/config' });
  return (
    <Page
      title={text.title(name)}
      actions={
        <LinkButton variant="default" to="/nodes/$id" params={{ id }}>
          {name}
        </LinkButton>
      }
    >
      <Group gap="md" align="flex-start">
        <Generation
          name="generation"
          label={text.generation}
          description={text.generationHint}
          placeholder={String(generation ?? '')}
        />
        <Generation name="from" label={text.compareWith} description={text.compareHint} />
      </Group>
      <Text size="sm" c="dimmed">
        {text.compiledToday}
      </Text>
      <Config id={id} search={search} />
    </Page>
  );
});

interface GenerationProps {
  readonly name: 'generation' | 'from';
  readonly label: string;
  readonly description: string;
  readonly placeholder?: string;
}

/** A generation in the address, which waits until one pauses typing. */
function Generation({ name, ...input }: GenerationProps): ReactNode {
  const search = useSearch({ from: '/nodes/$id/config' });
  const navigate = useNavigate({ from: '/nodes/$id/config' });
  const show = useDebouncedCallback((typed: number | string) => {
    const generation = typed === '' ? undefined : Number(typed);
    void navigate({ search: (now) => ({ ...now, page: undefined, [name]: generation }), replace: true });
  }, typingMs);
  return (
    <NumberInput {...input} defaultValue={search[name] ?? ''} min={0} allowDecimal={false} w={200} onChange={show} />
  );
}

/** One generation, or the difference of two: in sentences, or raw. */
function Config({ id, search }: { readonly id: string; readonly search: NodeConfigSearch }): ReactNode {
  const { from, generation, as = 'said', page = 1 } = search;
  const navigate = useNavigate({ from: '/nodes/$id/config' });
  const show = (changed: Partial<NodeConfigSearch>): void =>
    void navigate({ search: { ...search, page: undefined, ...changed }, replace: true });
  const before = useQuery({ ...configQuery(id, from), enabled: from !== undefined });
  const after = useQuery(configQuery(id, generation));
  const failed = [before, after].find(({ error }) => error !== null);
  if (failed?.error) return <Problem error={failed.error} retry={() => void failed.refetch()} />;
  if (after.data === undefined || (from !== undefined && before.data === undefined)) return <PageSkeleton />;
  const paged = { page, onPage: (to: number) => show({ page: to }) };
  return (
    <Tabs value={as} onChange={(to) => show({ as: to === 'raw' ? 'raw' : undefined })} keepMounted={false}>
      <Tabs.List>
        <Tabs.Tab value="said">{text.readable}</Tabs.Tab>
        <Tabs.Tab value="raw">{text.raw}</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="said" pt="md">
        <Stack gap="md">
          {before.data === undefined || from === undefined ? (
            <SaidConfig config={after.data} {...paged} />
          ) : (
            <SaidDifference before={before.data} after={after.data} {...paged} />
          )}
        </Stack>
      </Tabs.Panel>
      <Tabs.Panel value="raw" pt="md">
        {before.data === undefined || from === undefined ? (
          <Snapshot config={after.data} />
        ) : (
          <ConfigDifference before={before.data} after={after.data} />
        )}
      </Tabs.Panel>
    </Tabs>
  );
}

function Snapshot({ config }: { readonly config: NodeConfig }): ReactNode {
  return (
    <Section title={`${text.generation} ${formatCount(config.generation)}`}>
      <Stack gap="xs">
        <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
          {text.checksum} {config.checksum}
        </Text>
        <Code block tabIndex={0}>
          {JSON.stringify(config.snapshot, null, 2)}
        </Code>
      </Stack>
    </Section>
  );
}
