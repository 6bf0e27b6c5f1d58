/** The form of a webhook, new or stored. A new one shows its secret once. */
import { Checkbox, MultiSelect, Stack, Switch, TagsInput, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { EditPage } from '../shared/forms/edit-page.js';
import { ResourceForm } from '../shared/forms/resource-form.js';
import type { FormOf } from '../shared/forms/resource-form.js';
import { Page } from '../shared/ui/page.js';
import { typeNames } from '../shared/ui/resource-link.js';
import { SecretOnce } from '../shared/ui/secret-once.js';
import { ChosenNodes } from './chosen-nodes.js';
import { createWebhook, updateWebhook, webhookQuery } from './webhooks.js';
import type { Webhook } from './webhooks.js';
import { text } from './webhooks.text.js';

type Made = Schemas['CreatedWebhook'];
type Values = Pick<Webhook, 'name' | 'url' | 'types' | 'enabled'> & {
  readonly filters: Required<Schemas['ShownWebhookFilters']>;
};

const labels = {
  name: text.name,
  url: text.url,
  types: text.types,
  enabled: text.enabled,
  'filters.resource_type': text.resourceType,
  'filters.resource_id': text.resourceId,
  'filters.node_id': text.nodes,
  'filters.actor': text.actor,
};

const valuesOf = (webhook: Webhook | undefined): Values => ({
  name: webhook?.name ?? '',
  url: webhook?.url ?? '',
  types: webhook?.types ?? ['command', 'apply'],
  enabled: webhook?.enabled ?? true,
  filters: { resource_type: [], resource_id: [], node_id: [], actor: [], ...webhook?.filters },
});

/** What the API gets: filters that are set alone. */
function sent(values: Partial<Values>): Schemas['WebhookChanges'] {
  const { filters, ...rest } = values;
  if (filters === undefined) return rest;
  const set = Object.entries(filters).filter(([, list]) => list.length > 0);
  return { ...rest, filters: Object.fromEntries(set) as Schemas['WebhookFilters'] };
}

export function NewWebhookPage(): ReactNode {
  const navigate = useNavigate();
  const [made, setMade] = useState<Made>();
  if (made !== undefined) {
    return (
      <Page title={made.name}>
        <SecretOnce
          title={text.secretTitle}
          label={text.secret}
          secret={made.secret}
          onKept={() => void navigate({ to: '/webhooks/$id', params: { id: made.id } })}
        >
          {text.secretMeaning}
        </SecretOnce>
      </Page>
    );
  }
  return (
    <Page title={text.newTitle}>
      <ResourceForm<Values, Made>
        valuesOf={() => valuesOf(undefined)}
        labels={labels}
        save={({ values, headers }) => createWebhook({ values: sent(values), headers })}
        onSaved={({ data }) => setMade(data)}
        onCancel={() => void navigate({ to: '/webhooks' })}
        role="admin"
        saveLabel={text.add}
      >
        {(form) => <Fields form={form} />}
      </ResourceForm>
    </Page>
  );
}

export function EditWebhookPage(): ReactNode {
  const { id } = useParams({ from: '/webhooks/$id/edit' });
  const navigate = useNavigate();
  return (
    <EditPage<Values, Webhook>
      query={useQuery(webhookQuery(id))}
      text={text}
      valuesOf={valuesOf}
      labels={labels}
      save={({ values, headers }) => updateWebhook(id, { values: sent(values), headers })}
      back={() => void navigate({ to: '/webhooks/$id', params: { id } })}
      role="admin"
    >
      {(form) => <Fields form={form} />}
    </EditPage>
  );
}

const types = ['command', 'apply', 'session', 'sign_in'] as const;

function Fields({ form }: { readonly form: FormOf<Values> }): ReactNode {
  return (
    <>
      <TextInput
        label={text.name}
        description={text.nameHint}
        required
        data-autofocus
        {...form.getInputProps('name')}
      />
      <TextInput label={text.url} description={text.urlHint} type="url" required {...form.getInputProps('url')} />
      <Checkbox.Group label={text.types} required {...form.getInputProps('types')}>
        <Stack gap="xs" pt="xs">
          {types.map((type) => (
            <Checkbox key={type} value={type} label={text.typeNames[type]} />
          ))}
        </Stack>
      </Checkbox.Group>
      <MultiSelect
        label={`${text.filters}: ${text.resourceType}`}
        description={text.anyHint}
        data={Object.entries(typeNames).map(([value, label]) => ({ value, label }))}
        {...form.getInputProps('filters.resource_type')}
      />
      <TagsInput
        label={`${text.filters}: ${text.resourceId}`}
        description={`${text.listHint} ${text.anyHint}`}
        {...form.getInputProps('filters.resource_id')}
      />
      <ChosenNodes {...form.getInputProps('filters.node_id')} />
      <TagsInput
        label={`${text.filters}: ${text.actor}`}
        description={`${text.listHint} ${text.anyHint}`}
        {...form.getInputProps('filters.actor')}
      />
      <Switch label={text.enabled} {...form.getInputProps('enabled', { type: 'checkbox' })} />
    </>
  );
}
