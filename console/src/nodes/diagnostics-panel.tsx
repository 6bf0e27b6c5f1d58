/** Diagnostics of a node: a run, how far it is, and what the agent found. Only for those who may read its log. */
import { Button, Code, Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { serviceNow } from '../shared/api/client.js';
import { useAttempt } from '../shared/forms/attempt.js';
import { queryClient } from '../shared/live/queries.js';
import { useMay } from '../shared/session.js';
import { columnsOf, DataTable } from '../shared/ui/data-table.js';
import { useNow } from '../shared/ui/now.js';
import { Problem } from '../shared/ui/problem.js';
import { Section } from '../shared/ui/section.js';
import { State } from '../shared/ui/state.js';
import { When } from '../shared/ui/when.js';
import { diagnosticsQuery, isAwaited, lastRun, worstFirst, type Report } from './diagnostics.js';
import { text } from './diagnostics.text.js';
import { commandsQuery, sendCommand, type Node } from './nodes.js';

/** The feed does not announce an answer, so it is polled while somebody waits for it. */
const awaitedMs = 2_000;

export function Diagnostics({ node }: { readonly node: Node }): ReactNode {
  return useMay('operator') ? <Panel node={node} /> : null;
}

function Panel({ node: { id, status } }: { readonly node: Node }): ReactNode {
  const { working, refused, attempt } = useAttempt();
  const { data: commands } = useQuery({
    ...commandsQuery(id),
    refetchInterval: ({ state: { data } }) =>
      data !== undefined && isAwaited(lastRun(data.items), serviceNow()) ? awaitedMs : false,
  });
  const run = commands && lastRun(commands.items);
  const answered = run?.state === 'answered' ? run.id : undefined;
  const { data: report, error, refetch } = useQuery(diagnosticsQuery(id, answered));
  const awaited = isAwaited(run, useNow());
  const start = (): Promise<void> =>
    attempt(async () => {
      await sendCommand(id, 'RUN_DIAGNOSTICS');
      await queryClient.invalidateQueries(commandsQuery(id));
    });
  return (
    <Section
      title={text.title}
      actions={
        <Button size="xs" variant="default" loading={working} disabled={awaited} onClick={() => void start()}>
          {text.run}
        </Button>
      }
    >
      {refused !== undefined && <Problem error={refused} />}
      <Text size="sm" component="div" role="status">
        {awaited && <State mood="busy">{run?.state === 'queued' ? text.queued : text.delivered}</State>}
        {!awaited && run?.state === 'expired' && <State mood="warning">{text.expired}</State>}
        {!awaited && run?.state === 'delivered' && <State mood="warning">{text.silent}</State>}
        {awaited && status === 'offline' && ` ${text.offline}`}
      </Text>
      {report === undefined && error !== null && <Problem error={error} retry={() => void refetch()} />}
      {report !== undefined && <Found report={report} />}
    </Section>
  );
}

const columns = columnsOf<Report['items'][number]>([
  [text.item, ({ name, ok }) => <State mood={ok ? 'good' : 'bad'}>{name}</State>],
  [
    text.value,
    ({ value }) => (
      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
        {value}
      </Text>
    ),
  ],
]);

function Found({ report: { at, agent_version: agent, items, log } }: { readonly report: Report }): ReactNode {
  if (at === null) return <Text size="sm">{text.none}</Text>;
  const wrong = items.filter(({ ok }) => !ok).length;
  return (
    <>
      <Group gap="md" fz="sm">
        <State mood={wrong === 0 ? 'good' : 'bad'}>{wrong === 0 ? text.allWell : text.wrong(wrong)}</State>
        <span>
          {text.report} <When at={at} />
        </span>
        <span>{agent}</span>
        <Text size="sm" c="dimmed">
          {text.kept}
        </Text>
      </Group>
      <DataTable
        caption={text.caption}
        columns={columns}
        rows={worstFirst(items)}
        rowKey={({ name, value }) => `${name} ${value}`}
        empty={null}
      />
      {log.length > 0 && (
        <details>
          <summary>{text.log(log.length)}</summary>
          <Code block tabIndex={0} mah={320} style={{ overflow: 'auto', whiteSpace: 'pre-wrap' }}>
            {log.join('\n')}
          </Code>
        </details>
      )}
    </>
  );
}
