/**
 * The table of every list: one page of rows that the service sorted and filtered, aligned figures, a row of a fixed height,
 * headings that sort, and a pager. The caller chooses page and order, from the address.
 */
import { ActionIcon, Checkbox, Group, Skeleton, Table, Text, UnstyledButton, VisuallyHidden } from '@mantine/core';
import {
  createColumnHelper,
  metaHelper,
  tableFeatures,
  useTable,
  type ColumnDef,
  type RowData,
} from '@tanstack/react-table';
import { useMemo, type MouseEvent, type ReactNode } from 'react';
import { pageSize } from '../search.js';
import classes from './data-table.module.css';
import { formatCount, none } from './format.js';
import { text } from './ui.text.js';

interface ColumnMeta {
  /** Figures. */
  readonly numeric?: true;
  /** Hidden where the window is narrow. */
  readonly minor?: true;
  /** One line, cut where it is too long; shown whole on hover. */
  readonly cut?: true;
  /** The API's word for sorting by it. */
  readonly sort?: string;
}

interface Shown<Row> extends ColumnMeta {
  readonly cellOf: (row: Row) => ReactNode;
}

const features = tableFeatures({ columnMeta: metaHelper<Shown<never>>() });
type Features = typeof features;

export type Columns<Row extends RowData> = readonly ColumnDef<Features, Row>[];

type Column<Row> = readonly [heading: string, cell: (row: Row) => ReactNode, meta?: ColumnMeta];

/** Makes the columns of a table; call it at the top of a module. */
export function columnsOf<Row extends RowData>(columns: readonly Column<Row>[]): Columns<Row> {
  const { display } = createColumnHelper<Features, Row>();
  return columns.map(([header, cell, meta = {}], index) =>
    display({ id: String(index), header, meta: { ...meta, cellOf: cell }, cell: ({ row }) => cell(row.original) }),
  );
}

export interface DataTableProps<Row extends RowData> {
  /** What the rows are, for screen readers. */
  readonly caption: string;
  readonly columns: Columns<Row>;
  /** Undefined while they load. */
  readonly rows: readonly Row[] | undefined;
  readonly rowKey: (row: Row) => string;
  /** In place of the rows when there are none. */
  readonly empty: ReactNode;
  /** Absent for a list that is not paged. */
  readonly paging?: Paging;
  readonly sorting?: Sorting;
  /** Absent where rows cannot be chosen. */
  readonly choosing?: Choosing<Row>;
}

export interface Choosing<Row> {
  readonly isChosen: (row: Row) => boolean;
  readonly onChoose: (rows: readonly Row[], chosen: boolean) => void;
  readonly nameOf: (row: Row) => string;
}

export interface Paging {
  readonly page: number;
  readonly total: number;
  onPage(page: number): void;
}

export interface Sorting {
  /** `name` or `-name`. */
  readonly sort: string;
  onSort(sort: string): void;
}

const noRows: readonly never[] = [];
/** Cells that say nothing. */
const nothing: readonly ReactNode[] = [none, null, undefined, false, ''];
const comingRows = 6;

export function DataTable<Row extends RowData>(props: DataTableProps<Row>): ReactNode {
  const { caption, columns, rows, rowKey, empty, paging, sorting, choosing } = props;
  const shown = useMemo(() => columns.filter((column, index) => index === 0 || isSaid(column, rows)), [columns, rows]);
  const table = useTable<Features, Row>({ features, columns: shown, data: rows ?? noRows, getRowId: rowKey });
  if (rows?.length === 0) return paging !== undefined && paging.total > 0 ? <Pager {...paging} /> : empty;
  return (
    <div>
      <Table.ScrollContainer minWidth={0} type="native" className={classes.scroll}>
        <Table highlightOnHover verticalSpacing={4} aria-busy={rows === undefined} className={classes.table}>
          <caption>
            <VisuallyHidden>{caption}</VisuallyHidden>
          </caption>
          <Table.Thead>
            {table.getHeaderGroups().map((group) => (
              <Table.Tr key={group.id}>
                {choosing !== undefined && <ChooseAll rows={rows ?? noRows} {...choosing} />}
                {group.headers.map((header) => {
                  const meta = header.column.columnDef.meta;
                  const label = <table.FlexRender header={header} />;
                  return (
                    <Table.Th key={header.id} {...cellProps(meta)} aria-sort={ariaSort(meta?.sort, sorting?.sort)}>
                      {meta?.sort === undefined || sorting === undefined ? (
                        label
                      ) : (
                        <SortButton by={meta.sort} sorting={sorting}>
                          {label}
                        </SortButton>
                      )}
                    </Table.Th>
                  );
                })}
              </Table.Tr>
            ))}
          </Table.Thead>
          <Table.Tbody>
            {table.getRowModel().rows.map((row) => (
              <Table.Tr key={row.id} data-chosen={choosing?.isChosen(row.original) || undefined}>
                {choosing !== undefined && (
                  <Table.Td className={classes.choice}>
                    <Checkbox
                      size="xs"
                      aria-label={text.choose(choosing.nameOf(row.original))}
                      checked={choosing.isChosen(row.original)}
                      onChange={({ currentTarget }) => choosing.onChoose([row.original], currentTarget.checked)}
                    />
                  </Table.Td>
                )}
                {row.getAllCells().map((cell) => (
                  <Table.Td
                    key={cell.id}
                    {...cellProps(cell.column.columnDef.meta)}
                    onMouseEnter={cell.column.columnDef.meta?.cut && tellWhole}
                  >
                    <table.FlexRender cell={cell} />
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
            {rows === undefined && (
              <Coming columns={[...(choosing === undefined ? [] : [undefined]), ...shown.map(({ meta }) => meta)]} />
            )}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {paging !== undefined && rows !== undefined && <Pager {...paging} />}
    </div>
  );
}

function ChooseAll<Row>({ rows, isChosen, onChoose }: Choosing<Row> & { readonly rows: readonly Row[] }): ReactNode {
  const chosen = rows.filter(isChosen).length;
  return (
    <Table.Th className={classes.choice}>
      <Checkbox
        size="xs"
        aria-label={text.chooseAll}
        checked={chosen > 0 && chosen === rows.length}
        indeterminate={chosen > 0 && chosen < rows.length}
        onChange={({ currentTarget }) => onChoose(rows, currentTarget.checked)}
      />
    </Table.Th>
  );
}

const cellProps = (meta: ColumnMeta | undefined) => ({
  'data-numeric': meta?.numeric,
  'data-minor': meta?.minor,
  'data-cut': meta?.cut,
});

/** Whether any row has something in the column: a column that is empty everywhere is not shown. */
function isSaid<Row extends RowData>({ meta }: Columns<Row>[number], rows: readonly Row[] | undefined): boolean {
  // The row is of the type that the column was made for.
  const cellOf = meta?.cellOf as ((row: Row) => ReactNode) | undefined;
  return rows === undefined || cellOf === undefined || rows.some((row) => !nothing.includes(cellOf(row)));
}

function tellWhole({ currentTarget: cell }: MouseEvent<HTMLElement>): void {
  cell.title = cell.scrollWidth > cell.clientWidth ? (cell.textContent ?? '') : '';
}

/** Placeholders for rows that are loading, aligned like them. */
function Coming({ columns }: { readonly columns: readonly (ColumnMeta | undefined)[] }): ReactNode {
  return Array.from({ length: comingRows }, (_, row) => (
    <Table.Tr key={row}>
      {columns.map((meta, column) => (
        <Table.Td key={column} {...cellProps(meta)}>
          <Skeleton h={10} w={column === 0 ? '70%' : '45%'} ml={meta?.numeric && 'auto'} />
        </Table.Td>
      ))}
    </Table.Tr>
  ));
}

function ariaSort(by: string | undefined, sort: string | undefined): 'ascending' | 'descending' | undefined {
  if (by === undefined) return undefined;
  if (sort === by) return 'ascending';
  return sort === `-${by}` ? 'descending' : undefined;
}

interface SortButtonProps {
  readonly by: string;
  readonly sorting: Sorting;
  readonly children: ReactNode;
}

function SortButton({ by, sorting: { sort, onSort }, children }: SortButtonProps): ReactNode {
  const direction = ariaSort(by, sort);
  return (
    <UnstyledButton className={classes.sort} onClick={() => onSort(direction === 'ascending' ? `-${by}` : by)}>
      {children}
      <span aria-hidden="true">{direction === undefined ? '' : direction === 'ascending' ? ' ↑' : ' ↓'}</span>
    </UnstyledButton>
  );
}

/** Which rows of how many are shown, and the way to the others, also back from a page that has lost its last row. */
export function Pager({ page, total, onPage }: Paging): ReactNode {
  const pages = Math.max(1, Math.ceil(total / pageSize));
  const first = (page - 1) * pageSize + 1;
  const isPast = page > pages;
  return (
    <Group justify="flex-end" gap="xs" pt="xs">
      <Text size="sm" c="dimmed" className={classes.range}>
        {isPast
          ? text.pastRows(formatCount(total))
          : text.rows(formatCount(first), formatCount(Math.min(page * pageSize, total)), formatCount(total))}
      </Text>
      {(pages > 1 || isPast) && (
        <>
          <ActionIcon
            variant="default"
            aria-label={text.previousPage}
            disabled={page <= 1}
            onClick={() => onPage(isPast ? pages : page - 1)}
          >
            ‹
          </ActionIcon>
          <ActionIcon
            variant="default"
            aria-label={text.nextPage}
            disabled={page >= pages}
            onClick={() => onPage(page + 1)}
          >
            ›
          </ActionIcon>
        </>
      )}
    </Group>
  );
}
