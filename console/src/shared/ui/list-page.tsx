/** Makes the page of a list: a search by name, what else filters, its rows, and what to do where there are none. */
import { TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { nameOf, type ListedType } from '../api/crud.js';
import type { Query } from '../api/read.js';
import { ownOf, type ListSearch } from '../search.js';
import { useMay, type Role } from '../session.js';
import { Choices, type Choice } from './choices.js';
import type { Columns } from './data-table.js';
import { NoRows } from './empty.js';
import { FilterBar } from './filter-bar.js';
import { LinkButton } from './links.js';
import { ListTable } from './list-table.js';
import { Page } from './page.js';
import { pagesOf, ResourceLink } from './resource-link.js';
import { useTyped } from './typed.js';
import { text as shared } from './ui.text.js';
import { When } from './when.js';

type Named = { readonly id: string } & Parameters<typeof nameOf>[0];

/** The first column of most lists: the name, which leads to the page of the resource. */
export const nameColumn = (type: ListedType) =>
  [
    shared.name,
    (row: Named) => <ResourceLink type={type} id={row.id} name={nameOf(row)} />,
    { sort: 'name', cut: true },
  ] as const;

/** And the last one. */
export const updatedColumn = [
  shared.updated,
  (row: { readonly updated_at: string }) => <When at={row.updated_at} />,
  { minor: true, sort: 'updated_at' },
] as const;

interface Words {
  readonly title: string;
  /** What the rows are, for screen readers. */
  readonly caption: string;
  readonly add: string;
  readonly emptyTitle: string;
  /** What to do where there is nothing yet. */
  readonly empty: string;
}

/** What the address of every list holds; each list has its own sort orders. */
type AnyListSearch = Omit<ListSearch, 'sort'> & { readonly sort?: string | undefined };

export interface FiltersProps<S> {
  readonly search: S;
  readonly onFilter: (changed: Partial<S>) => void;
}

export interface ChosenProps<Row> {
  /** At least one. */
  readonly chosen: readonly Row[];
  readonly onClear: () => void;
}

interface List {
  readonly items: readonly { readonly id: string }[];
  readonly total: number;
}

interface ListPage<L extends List, S extends object> {
  /** How the type is listed. */
  readonly of: {
    readonly type: ListedType;
    readonly list: (search: S) => Query<L>;
  };
  readonly text: Words;
  readonly columns: Columns<L['items'][number]>;
  /** Further columns, for admins. */
  readonly forAdmins?: Columns<L['items'][number]>;
  /** Who may add one. */
  readonly role?: Role;
  /** Filters of a few words each, beside the search. */
  readonly choices?: readonly Choice<S>[];
  /** Other filters. */
  readonly Filters?: (props: FiltersProps<S>) => ReactNode;
  /** Counts by state, which filter. */
  readonly Counts?: (props: FiltersProps<S>) => ReactNode;
  /** What can be done with chosen rows, by those who may add one. */
  readonly Chosen?: (props: ChosenProps<L['items'][number]>) => ReactNode;
  /** What the search looks into; names when absent. */
  readonly find?: string;
  /** What it is sorted by where the address says nothing; names when absent. */
  readonly sortedBy?: string;
}

/** The chosen rows, on any page of the list; choosing no rows clears them. */
function useChosen<Row extends { readonly id: string }>() {
  const [chosen, set] = useState<ReadonlyMap<string, Row>>(new Map());
  const choose = (rows: readonly Row[], on: boolean): void =>
    set((before) => {
      if (rows.length === 0) return new Map();
      const ids = new Set(rows.map(({ id }) => id));
      const others = [...before].filter(([id]) => !ids.has(id));
      return new Map([...others, ...(on ? rows.map((row) => [row.id, row] as const) : [])]);
    });
  return [chosen, choose] as const;
}

/** The page of the list of a type, whose filters, order and page are in its address. */
export function listPage<L extends List, S extends object>(page: ListPage<L, S>): () => ReactNode {
  const { of, text, columns, forAdmins = [], role = 'operator', choices = [], Filters, Counts, Chosen } = page;
  const { find = shared.find, sortedBy } = page;
  return function ListPage() {
    // The router reads the address of each list with the list's own search parameters.
    const search = ownOf(useSearch({ strict: false })) as AnyListSearch & S;
    const navigate = useNavigate();
    const show = (changed: Partial<AnyListSearch>, replace: boolean): void =>
      void navigate({ to: '.', search: { ...search, ...changed } as object, replace });
    const filter = (changed: object): void => show({ ...changed, page: undefined }, true);
    const typed = useTyped(search.q ?? '', (q) => filter({ q }));
    const isAdmin = useMay('admin');
    const mayAdd = useMay(role);
    const add = mayAdd && <LinkButton {...pagesOf(of.type).add}>{text.add}</LinkButton>;
    const [chosen, choose] = useChosen<L['items'][number]>();
    const { page: at, sort, ...filters } = search;
    const filtered = Object.values(filters).some((value) => value !== undefined);
    return (
      <Page title={text.title} actions={add}>
        {Counts !== undefined && <Counts search={search} onFilter={filter} />}
        {Chosen !== undefined && chosen.size > 0 ? (
          <Chosen chosen={[...chosen.values()]} onClear={() => choose([], true)} />
        ) : (
          <FilterBar
            find={
              <TextInput
                {...typed}
                aria-label={find}
                placeholder={find}
                type="search"
                leftSection={<IconSearch size={14} />}
              />
            }
            folded={choices.length > 0 || Filters !== undefined}
          >
            <Choices choices={choices} search={search} onFilter={filter} />
            {Filters !== undefined && <Filters search={search} onFilter={filter} />}
          </FilterBar>
        )}
        <ListTable<L['items'][number]>
          caption={text.caption}
          columns={isAdmin ? [...columns, ...forAdmins] : columns}
          query={useQuery(of.list({ ...search, sort: sort ?? sortedBy }))}
          rowKey={({ id }) => id}
          empty={
            <NoRows filtered={filtered} title={text.emptyTitle}>
              {text.empty} {add}
            </NoRows>
          }
          paging={{ page: at ?? 1, onPage: (to) => show({ page: to }, false) }}
          {...(Chosen !== undefined &&
            mayAdd && {
              choosing: {
                isChosen: ({ id }) => chosen.has(id),
                onChoose: choose,
                // Every list is of things that have a name.
                nameOf: (row) => nameOf(row as Named),
              },
            })}
          sorting={{
            sort: sort ?? sortedBy ?? 'name',
            onSort: (by) => show({ sort: by, page: undefined }, false),
          }}
        />
      </Page>
    );
  };
}
