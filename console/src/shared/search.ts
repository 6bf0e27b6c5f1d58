/** Reads what the address of a page may hold. What is not understood is dropped, so that an old bookmark still opens. */
import { spans } from './ui/curve.js';

export type Search = Readonly<Record<string, unknown>>;

export const textOf = (search: Search, name: string): string | undefined => {
  const value = search[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
};

/** A time, written as the API wants it. */
export const timeOf = (search: Search, name: string): string | undefined => {
  const time = Date.parse(String(search[name]));
  return Number.isNaN(time) ? undefined : new Date(time).toISOString();
};

export const listOf = (search: Search, name: string): string[] | undefined => {
  const value = search[name];
  const list = (Array.isArray(value) ? value : [value]).filter((one) => typeof one === 'string' && one !== '');
  return list.length === 0 ? undefined : list;
};

/** The API's default; keeps the page below 60 rows. */
export const pageSize = 50;
/** The largest page that a list answers. */
export const largestPage = 500;

/** One of the allowed words. */
export const wordOf = <W extends string>(search: Search, name: string, words: readonly W[]): W | undefined =>
  words.find((word) => word === search[name]);

/** The page of a list; undefined for the first. */
export const pageOf = (search: Search, name = 'page'): number | undefined => {
  const page = Number(search[name]);
  return Number.isInteger(page) && page > 1 ? page : undefined;
};

/** What every list is sorted by. */
export const sorts = ['name', '-name', 'created_at', '-created_at', 'updated_at', '-updated_at'] as const;

/** The search parameters of a list without filters of its own. */
export const listSearch = (search: Search) => ({
  q: textOf(search, 'q'),
  sort: wordOf(search, 'sort', sorts),
  page: pageOf(search),
});

export type ListSearch = ReturnType<typeof listSearch>;

/** The search parameters that every page may have. */
export const anySearch = (search: Search) => ({
  /** The dialog that is open, by a word of the page's own. */
  dialog: textOf(search, 'dialog'),
  /** The field that a link is about, by its path in the API: forms bring the reader to it. */
  field: textOf(search, 'field'),
  /** How far back curves go; the default of the page when absent. */
  span: wordOf(search, 'span', spans),
});

/** The search parameters that only one page has. */
export const ownOf = <S extends Partial<ReturnType<typeof anySearch>>>({
  dialog: _d,
  field: _f,
  span: _s,
  ...own
}: S) => own;
