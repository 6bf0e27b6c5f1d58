/** The parts, one section each. Words and figures are made up; what a part cannot do without the service is left out. */
import { Button, Container, Group, Menu, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useState, type ReactNode } from 'react';
import { Refusal } from '../../shared/api/client.js';
import { Confirm } from '../../shared/forms/confirm.js';
import { CopyField } from '../../shared/ui/copy-field.js';
import { CopyText } from '../../shared/ui/copy-text.js';
import { columnsOf, DataTable } from '../../shared/ui/data-table.js';
import { sayDone, sayRefused } from '../../shared/ui/done.js';
import { Empty } from '../../shared/ui/empty.js';
import { Facts } from '../../shared/ui/facts.js';
import { formatBytes, formatCount } from '../../shared/ui/format.js';
import { More } from '../../shared/ui/more.js';
import { Page } from '../../shared/ui/page.js';
import { PageSkeleton } from '../../shared/ui/page-skeleton.js';
import { Plot } from '../../shared/ui/plot.js';
import { Problem } from '../../shared/ui/problem.js';
import { SecretOnce } from '../../shared/ui/secret-once.js';
import { Section } from '../../shared/ui/section.js';
import { State, type Mood } from '../../shared/ui/state.js';
import { states } from '../../shared/ui/states.js';
import { Warnings } from '../../shared/ui/warnings.js';
import { When } from '../../shared/ui/when.js';
import { FieldParts } from './fields.js';

const refused = new Refusal({
  status: 409,
  code: 'conflict',
  sentence: 'name: "edge-1" is the name of another node',
  requestId: 'parts-1',
});

export function Parts(): ReactNode {
  return (
    <Container size="lg" py="md" component="main">
      <Page
        title="A name of 48 characters, which is cut in no heading"
        aside={<State mood="good">online</State>}
        line={<CopyText label="Address" value="203.0.113.5:443" />}
        actions={
          <>
            <Button size="xs">Main action</Button>
            <Button size="xs" variant="default">
              Edit
            </Button>
            <More>
              <Menu.Item>History</Menu.Item>
              <Menu.Item color="red">Delete</Menu.Item>
            </More>
          </>
        }
      >
        <States />
        <Section title="Facts">
          <Facts facts={{ Address: '203.0.113.5', Seen: <When at="2030-01-31T12:00:00.000Z" />, Description: null }} />
        </Section>
        <Tables />
        <FieldParts />
        <Curves />
        <Section title="Nothing, and what comes">
          <Empty title="No nodes yet">Add machines to see them here.</Empty>
          <PageSkeleton />
        </Section>
        <Notices />
      </Page>
    </Container>
  );
}

function States(): ReactNode {
  return (
    <Section title="States">
      {Object.entries(states).map(([kind, all]) => (
        <Group key={kind} gap="md" fz="sm">
          <Text size="sm" c="dimmed" w={{ base: '100%', sm: 100 }}>
            {kind}
          </Text>
          {Object.entries<readonly [Mood, string]>(all).map(([state, [mood, word]]) => (
            <State key={state} mood={mood} why={state}>
              {word}
            </State>
          ))}
        </Group>
      ))}
    </Section>
  );
}

interface Row {
  readonly name: string;
  readonly mood: Mood;
  readonly bytes: number;
}

const rows: readonly Row[] = [
  { name: 'edge-1', mood: 'good', bytes: 1_234_567 },
  {
    name: 'a name that is so long that a list cuts it, and shows it whole to those who point at it',
    mood: 'bad',
    bytes: 0,
  },
];

const columns = columnsOf<Row>([
  ['Name', ({ name }) => name, { cut: true, sort: 'name' }],
  ['State', ({ mood }) => <State mood={mood}>{mood}</State>],
  ['Traffic', ({ bytes }) => formatBytes(bytes), { numeric: true, sort: 'bytes' }],
  ['Minor', () => formatCount(1_234), { numeric: true, minor: true }],
]);

function Tables(): ReactNode {
  const [sort, onSort] = useState('name');
  const [chosen, choose] = useState<readonly string[]>([]);
  const [page, onPage] = useState(1);
  const shared = {
    columns,
    rowKey: ({ name }: Row): string => name,
    empty: <Empty title="No matches">Show all</Empty>,
  };
  return (
    <Section title="Tables">
      <DataTable
        {...shared}
        caption="Rows"
        rows={rows}
        sorting={{ sort, onSort }}
        paging={{ page, total: 120, onPage }}
        choosing={{
          isChosen: ({ name }) => chosen.includes(name),
          onChoose: (of, on) => choose(on ? of.map(({ name }) => name) : []),
          nameOf: ({ name }) => name,
        }}
      />
      <DataTable {...shared} caption="No rows" rows={[]} />
      <DataTable {...shared} caption="Rows that come" rows={undefined} />
    </Section>
  );
}

const begin = 1_893_456_000;
const times = Array.from({ length: 60 }, (_, index) => begin + 60 * index);

function Curves(): ReactNode {
  const values = times.map((_, index) => (index > 20 && index < 35 ? null : 50 + 40 * Math.sin(index / 6)));
  const lone = times.map((_, index) => (index === 30 ? 70 : null));
  return (
    <Section title="Curves">
      <Plot
        title="With a gap and a mark"
        times={times}
        lines={[
          { label: 'sessions', values, tone: 'main' },
          { label: 'failed', values: values.map((value) => value && value / 8), tone: 'bad' },
        ]}
        format={(value) => formatCount(Math.round(value))}
        marks={[{ at: times[45] ?? begin }]}
      />
      <Plot
        title="A lone point"
        times={times}
        lines={[{ label: 'bytes', values: lone, tone: 'main' }]}
        format={(value) => formatBytes(value)}
      />
    </Section>
  );
}

function Notices(): ReactNode {
  const [opened, dialog] = useDisclosure();
  return (
    <Section title="Notices and dialogs">
      <Problem error={refused} retry={() => undefined} />
      <Warnings sentences={['edge-1 cannot run the REALITY listener of front']} />
      <SecretOnce title="It is shown only once" label="Token" secret="svctok_made_up" onKept={() => undefined}>
        Keep it where programs keep their secrets.
      </SecretOnce>
      <CopyField label="Lines to copy" value={'one\ntwo\nthree'} description="/etc/gateway-agent/env" />
      <Group>
        <Button variant="default" onClick={() => sayDone('Upstream web saved.', { entry: 'parts' })}>
          Say that it is done
        </Button>
        <Button variant="default" onClick={() => sayRefused(refused, 'Could not undo')}>
          Say that it is refused
        </Button>
        <Button variant="default" onClick={dialog.open}>
          Ask first
        </Button>
      </Group>
      <Confirm
        opened={opened}
        title="Delete edge-1?"
        action="Delete"
        onConfirm={() => Promise.reject(refused)}
        onClose={dialog.close}
      >
        <Stack gap="xs">Its agent is cut off. This can be undone.</Stack>
      </Confirm>
    </Section>
  );
}
