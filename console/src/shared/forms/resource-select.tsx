/** Chooses a resource by its name, found by what one types, as a fleet of thousands needs. */
import { Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import type { Schemas } from '../api/client.js';
import { findIn } from '../api/crud.js';
import { namedQuery, type Named } from '../named.js';
import { sentenceOf } from '../ui/sentence.js';
import { text } from './forms.text.js';
import { NoneYet } from './none-yet.js';

const typingMs = 150;
/** The rest is found by typing. */
const offered = 20;

type KeyType = Schemas['Credential']['key_type'];

/** What can be chosen, and the filter that the API has for it. */
export type Kind =
  | { readonly type: 'node' }
  | { readonly type: 'l4_upstream' }
  | { readonly type: 'credential'; readonly keyType: KeyType };

function find(kind: Kind, q: string, signal: AbortSignal): Promise<{ readonly items: readonly Named[] }> {
  const query = { page_size: offered, ...(q === '' ? {} : { q }) };
  return findIn(kind.type, kind.type === 'credential' ? { ...query, key_type: kind.keyType } : query, signal);
}

const foundQuery = (kind: Kind, q: string) =>
  queryOptions({
    queryKey: [kind.type, 'options', kind, q],
    queryFn: async ({ signal }) => (await find(kind, q, signal)).items,
    placeholderData: keepPreviousData,
  });

interface ResourceSelectProps {
  readonly kind: Kind;
  /** An id; empty for none. */
  readonly value?: string | undefined;
  readonly onChange: (id: string) => void;
  /** Absent where `ariaLabel` says it. */
  readonly label?: string | undefined;
  readonly ariaLabel?: string;
  readonly description?: ReactNode;
  readonly error?: ReactNode;
  readonly required?: boolean;
  readonly placeholder?: string;
  readonly maw?: number;
  readonly clearable?: boolean;
  /** If there is only one, it is chosen by itself, once. */
  readonly orOnly?: true;
  /** Ids that cannot be chosen. */
  readonly except?: readonly string[];
  /** A way to make one, below. */
  readonly children?: ReactNode;
}

export function ResourceSelect(props: ResourceSelectProps): ReactNode {
  const {
    kind,
    value = '',
    onChange,
    except = [],
    placeholder = text.choose,
    ariaLabel,
    children,
    orOnly,
    ...input
  } = props;
  const [typed, setTyped] = useState('');
  const { data: chosen } = useQuery(namedQuery(kind.type, value));
  // The field holds the name of what is chosen until one types another.
  const [wanted] = useDebouncedValue(typed === chosen?.name ? '' : typed.trim(), typingMs);
  const { data: found = [], error, isSuccess, isPlaceholderData } = useQuery(foundQuery(kind, wanted));
  const mayFill = useRef(orOnly === true);
  const [only, ...others] = found;
  useEffect(() => {
    if (!mayFill.current || isPlaceholderData || typed !== '' || only === undefined) return;
    mayFill.current = false;
    if (value === '' && others.length === 0) onChange(only.id);
  });
  const offer = found.filter(({ id }) => !except.includes(id) || id === value);
  const shown =
    chosen === undefined || chosen.id !== value || offer.some(({ id }) => id === value) ? offer : [chosen, ...offer];
  const select = (
    <Select
      {...input}
      {...(ariaLabel !== undefined && { 'aria-label': ariaLabel })}
      placeholder={placeholder}
      data={shown.map(({ id, name }) => ({ value: id, label: name }))}
      value={value === '' ? null : value}
      onChange={(id) => onChange(id ?? '')}
      searchable
      searchValue={typed}
      onSearchChange={setTyped}
      filter={({ options }) => options}
      nothingFoundMessage={error === null ? text.nothingFound : sentenceOf(error)}
      maxDropdownHeight={260}
      openOnFocus={false}
    />
  );
  const none = isSuccess && wanted === '' && found.length === 0;
  // A filter leads to no form: it is of no use before there is something, and is just empty.
  if (input.label === undefined && children === undefined) return select;
  return (
    <div>
      {select}
      {children ?? (none && <NoneYet of={kind.type === 'credential' ? kind.keyType : kind.type} />)}
    </div>
  );
}
