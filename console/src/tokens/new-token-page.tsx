/** Makes an API token, whose page shows it once. */
import { NumberInput, Select, Switch, TagsInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { newPage, type FieldsProps } from '../shared/forms/form-pages.js';
import { NameField } from '../shared/forms/name-field.js';
import { meQuery, rolesUpTo } from '../shared/session.js';
import { tokens, type ApiToken } from './tokens.js';
import { text } from './tokens.text.js';

type Made = Schemas['CreatedApiToken'];
type Values = Required<Schemas['NewApiToken']>;

const defaultDays = 90;
const mostDays = 366;

export const NewTokenPage = newPage<Values, ApiToken, Made>({
  type: 'api_token',
  title: text.add,
  role: 'viewer',
  undoable: false,
  labels: { role: text.role, expires_in_days: text.days, from: text.from },
  valuesOf: () => ({ name: '', role: 'viewer', expires_in_days: defaultDays, from: [] }),
  create: tokens.create,
  Fields,
  withSecret: true,
});

function Fields({ form }: FieldsProps<Values, ApiToken>): ReactNode {
  const { data: me } = useQuery(meQuery);
  const { expires_in_days: days } = form.getValues();
  return (
    <>
      <NameField form={form} hint={text.nameHint} />
      <Select
        label={text.role}
        data={rolesUpTo(me?.role ?? 'viewer').map((value) => ({ value, label: text.roles[value] }))}
        {...form.getInputProps('role')}
      />
      <NumberInput
        label={text.days}
        min={1}
        max={mostDays}
        disabled={days === null}
        {...form.getInputProps('expires_in_days')}
        value={days ?? ''}
      />
      <Switch
        label={text.neverEnds}
        checked={days === null}
        onChange={({ currentTarget }) =>
          form.setFieldValue('expires_in_days', (currentTarget.checked ? null : defaultDays) as never)
        }
      />
      <TagsInput label={text.from} description={text.fromHint} {...form.getInputProps('from')} />
    </>
  );
}
