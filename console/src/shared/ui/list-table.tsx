/** The table of a list that a query reads: its rows and their number, or what went wrong where there is no data. */
import type { RowData } from '@tanstack/react-table';
import type { ReactNode } from 'react';
import type { Refusal } from '../api/client.js';
import { DataTable, type DataTableProps, type Paging } from './data-table.js';
import { Problem } from './problem.js';

/** As the API answers it. */
interface List<Row> {
  readonly items: readonly Row[];
  /** Of a paged list. */
  readonly total?: number;
}

export interface ListTableProps<Row extends RowData> extends Omit<DataTableProps<Row>, 'rows' | 'paging'> {
  readonly query: {
    readonly data: List<Row> | undefined;
    readonly error: Refusal | null;
    readonly refetch: () => unknown;
  };
  /** Absent for a list that is not paged. */
  readonly paging?: Omit<Paging, 'total'>;
}

export function ListTable<Row extends RowData>({ query, paging, ...table }: ListTableProps<Row>): ReactNode {
  const { data, error, refetch } = query;
  if (data === undefined && error !== null) return <Problem error={error} retry={() => void refetch()} />;
  const paged = paging === undefined ? {} : { paging: { ...paging, total: data?.total ?? 0 } };
  return <DataTable {...table} {...paged} rows={data?.items} />;
}
