/** What the topology draws, as a table: its groups or nodes, or the links between them. */
import { Group, SegmentedControl, Text } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useMemo, type ReactNode } from 'react';
import { pageSize } from '../shared/search.js';
import { columnsOf, DataTable } from '../shared/ui/data-table.js';
import { formatCount, formatMilliseconds, none } from '../shared/ui/format.js';
import { State } from '../shared/ui/state.js';
import { StateOf } from '../shared/ui/state-of.js';
import { Name } from './shape-card.js';
import type { Line, Picture, Shape } from './shapes.js';
import classes from './topology.module.css';
import type { TopologySearch } from './topology-search.js';
import { text } from './topology.text.js';

interface PictureTableProps {
  readonly picture: Picture;
  readonly groupBy: string | undefined;
  readonly search: TopologySearch;
  readonly onPage: (page: number) => void;
}

interface ShapeRow extends Pick<PictureTableProps, 'groupBy' | 'search'> {
  readonly shape: Shape;
}

const shapeColumns = columnsOf<ShapeRow>([
  [text.name, (row) => <Name {...row} />, { cut: true }],
  [text.state, ({ shape }) => <State mood={shape.mood}>{shape.state}</State>],
  [
    text.chainsColumn,
    ({ shape: { chains } }) => (chains === null ? none : formatCount(chains)),
    { numeric: true, minor: true },
  ],
]);

interface LineRow extends Pick<PictureTableProps, 'groupBy' | 'search'> {
  readonly line: Line;
  readonly ends: ReadonlyMap<string, Shape>;
}

const end = ({ ends, ...rest }: LineRow, id: string): ReactNode => {
  const shape = ends.get(id);
  return shape === undefined ? none : <Name shape={shape} {...rest} />;
};

const lineColumns = columnsOf<LineRow>([
  [text.from, (row) => end(row, row.line.from)],
  [text.to, (row) => end(row, row.line.to)],
  [text.state, ({ line }) => <StateOf kind="health" is={line.state} />],
  [text.chainsColumn, ({ line }) => formatCount(line.chains), { numeric: true }],
  [
    text.roundTrip,
    ({ line: { rtt_ms: roundTrip } }) => (roundTrip === null ? none : formatMilliseconds(roundTrip)),
    { numeric: true, minor: true },
  ],
]);

export function PictureTable({ picture: { shapes, lines }, groupBy, search, onPage }: PictureTableProps): ReactNode {
  const navigate = useNavigate({ from: '/topology' });
  const { page = 1, table } = search;
  const ends = useMemo(() => new Map(shapes.map((shape) => [shape.id, shape])), [shapes]);
  const shown = <T,>(all: readonly T[]): readonly T[] => all.slice((page - 1) * pageSize, page * pageSize);
  const paging = (total: number) => (total > pageSize ? { paging: { page, total, onPage } } : {});
  return (
    <section className={classes.table} aria-label={text.tableOf}>
      <Group pb="xs">
        <SegmentedControl
          size="xs"
          aria-label={text.tableOf}
          value={table ?? 'shapes'}
          onChange={(chosen) =>
            void navigate({
              search: { ...search, page: undefined, table: chosen === 'links' ? chosen : undefined },
              replace: true,
              resetScroll: false,
            })
          }
          data={[
            { value: 'shapes', label: `${groupBy ?? text.tables.shapes}` },
            { value: 'links', label: text.tables.links },
          ]}
        />
      </Group>
      {table === 'links' ? (
        <DataTable
          caption={text.tables.links}
          columns={lineColumns}
          rows={shown(lines).map((line) => ({ line, ends, groupBy, search }))}
          rowKey={({ line: { from, to } }) => `${from} ${to}`}
          empty={<Text size="sm">{text.noLinks}</Text>}
          {...paging(lines.length)}
        />
      ) : (
        <DataTable
          caption={text.tables.shapes}
          columns={shapeColumns}
          rows={shown(shapes).map((shape) => ({ shape, groupBy, search }))}
          rowKey={({ shape: { id } }) => id}
          empty={null}
          {...paging(shapes.length)}
        />
      )}
    </section>
  );
}
