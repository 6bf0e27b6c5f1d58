/** The page of a list: a search by name, what else filters, its rows, and what to do where there are none. */
import { Group, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import type { ListSearch } from '../search.js';
import type { Columns } from './data-table.js';
import { Empty } from './empty.js';
import { TextLink } from './links.js';
import { ListTable } from './list-table.js';
import type { ListTableProps } from './list-table.js';
import { Page } from './page.js';
import { useTyped } from './typed.js';

interface Words {
  readonly title: string;
  /** What the rows are, for readers of the screen. */
  readonly caption: string;
  readonly find: string;
  readonly emptyTitle: string;
  /** What to do where there is nothing yet. */
  readonly empty: string;
  readonly nothingFound: string;
  readonly clear: string;
}

/** What the address of a list holds at least; what it can be sorted by is the list's own. */
type AnyListSearch = Omit<ListSearch, 'sort'> & { readonly sort: string | undefined };

interface ResourceListProps<Row extends { readonly id: string }, S extends AnyListSearch> {
  readonly text: Words;
  readonly search: S;
  /** Changes the address. */
  readonly onSearch: (search: S, replace: boolean) => void;
  readonly query: ListTableProps<Row>['query'];
  readonly columns: Columns<Row>;
  /** The button that adds one; absent for those who may not. */
  readonly add?: ReactNode;
  /** Beside the search. */
  readonly filters?: ReactNode;
}

export function ResourceList<Row extends { readonly id: string }, S extends AnyListSearch>(
  props: ResourceListProps<Row, S>,
): ReactNode {
  const { text, search, onSearch, query, columns, add, filters } = props;
  const find = useTyped(search.q ?? '', (q) => onSearch({ ...search, q, page: undefined }, true));
  const { page, sort, ...filter } = search;
  const filtered = Object.values(filter).some((value) => value !== undefined);
  return (
    <Page title={text.title} actions={add}>
      <Group gap="xs">
        <TextInput {...find} aria-label={text.find} placeholder={text.find} type="search" w={220} />
        {filters}
      </Group>
      <ListTable
        caption={text.caption}
        columns={columns}
        query={query}
        rowKey={({ id }) => id}
        empty={
          filtered ? (
            <Empty title={text.nothingFound}>
              <TextLink to="." search={{}}>
                {text.clear}
              </TextLink>
            </Empty>
          ) : (
            <Empty title={text.emptyTitle}>
              {text.empty} {add}
            </Empty>
          )
        }
        paging={{ page: page ?? 1, onPage: (to) => onSearch({ ...search, page: to }, false) }}
        sorting={{
          sort: sort ?? 'name',
          onSort: (by) => onSearch({ ...search, sort: by as S['sort'], page: undefined }, false),
        }}
      />
    </Page>
  );
}
