/** Makes an API token, and shows it once. */
import { NumberInput, Select, Switch, TagsInput, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { ResourceForm } from '../shared/forms/resource-form.js';
import { meQuery, rolesUpTo } from '../shared/session.js';
import { Page } from '../shared/ui/page.js';
import { SecretOnce } from '../shared/ui/secret-once.js';
import { createToken } from './tokens.js';
import { text } from './tokens.text.js';

type Made = Schemas['CreatedApiToken'];
type Values = Required<Schemas['NewApiToken']>;

const defaultDays = 90;
const mostDays = 366;
const labels = { name: text.name, role: text.role, expires_in_days: text.days, from: text.from };

export function NewTokenPage(): ReactNode {
  const navigate = useNavigate();
  const { data: me } = useQuery(meQuery);
  const [made, setMade] = useState<Made>();
  if (made !== undefined) {
    return (
      <Page title={made.name}>
        <SecretOnce
          title={text.madeTitle}
          label={text.token}
          secret={made.token}
          onKept={() => void navigate({ to: '/tokens/$id', params: { id: made.id } })}
        >
          {text.made}
        </SecretOnce>
      </Page>
    );
  }
  return (
    <Page title={text.newTitle}>
      <ResourceForm<Values, Made>
        valuesOf={() => ({ name: '', role: 'viewer', expires_in_days: defaultDays, from: [] })}
        labels={labels}
        save={createToken}
        onSaved={({ data }) => setMade(data)}
        onCancel={() => void navigate({ to: '/tokens' })}
        role="viewer"
        saveLabel={text.save}
      >
        {(form) => {
          const { expires_in_days: days } = form.getValues();
          return (
            <>
              <TextInput
                label={text.name}
                description={text.nameHint}
                required
                data-autofocus
                {...form.getInputProps('name')}
              />
              <Select
                label={text.role}
                data={rolesUpTo(me?.role ?? 'viewer').map((value) => ({ value, label: text.roles[value] }))}
                allowDeselect={false}
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
        }}
      </ResourceForm>
    </Page>
  );
}
