/** Chooses a rollout policy by its name, as settings and commands name it. */
import { Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { crud } from '../api/crud.js';
import { NoneYet } from './none-yet.js';

/** Only the first page: nobody chooses from a longer list. */
const { list } = crud('rollout_policy');
export const policiesQuery = list({});

interface RolloutPolicySelectProps {
  readonly label: string;
  readonly description?: ReactNode;
  readonly placeholder: string;
  readonly error?: ReactNode;
  /** Null for none. */
  readonly value?: string | null | undefined;
  readonly onChange: (name: string | null) => void;
  /** Further choices, listed first. */
  readonly also?: readonly { readonly value: string; readonly label: string }[];
  readonly clearable?: boolean;
}

export function RolloutPolicySelect(props: RolloutPolicySelectProps): ReactNode {
  const { also = [], value = null, clearable = true, ...input } = props;
  const { data } = useQuery(policiesQuery);
  const names = data?.items.map(({ name }) => name) ?? [];
  // A chosen policy that is not on the first page is listed too.
  const isListed = value === null || names.includes(value) || also.some((one) => one.value === value);
  const shown = isListed ? names : [value, ...names];
  const select = (
    <Select
      {...input}
      value={value}
      data={[...also, ...shown.map((name) => ({ value: name, label: name }))]}
      clearable={clearable}
    />
  );
  return (
    <div>
      {select}
      {data?.total === 0 && <NoneYet of="rollout_policy" />}
    </div>
  );
}
