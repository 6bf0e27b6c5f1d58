/** The form of a webhook, new or stored. The page of the webhook shows the secret that saving has made, once. */
import { Checkbox, MultiSelect, NumberInput, Select, Stack, Switch, TagsInput, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { editPage, newPage, type FieldsProps } from '../shared/forms/form-pages.js';
import { NameField } from '../shared/forms/name-field.js';
import { typeNames } from '../shared/ui/resource-link.js';
import { ChosenNodes } from './chosen-nodes.js';
import { webhooks, type Webhook } from './webhooks.js';
import { text } from './webhooks.text.js';

type Made = Schemas['CreatedWebhook'];
type Values = Pick<
  Webhook,
  'name' | 'url' | 'types' | 'enabled' | 'format' | 'chat_id' | 'group_secs' | 'console_links'
> & {
  readonly filters: Required<Schemas['ShownWebhookFilters']>;
};

const labels = {
  url: text.url,
  types: text.types,
  enabled: text.enabled,
  format: text.format,
  chat_id: text.chatId,
  group_secs: text.groupSecs,
  console_links: text.consoleLinks,
  'filters.statuses': text.statuses,
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
  format: webhook?.format ?? 'standard',
  chat_id: webhook?.chat_id ?? null,
  group_secs: webhook?.group_secs ?? 0,
  console_links: webhook?.console_links ?? true,
  filters: { resource_type: [], resource_id: [], node_id: [], actor: [], statuses: [], ...webhook?.filters },
});

/** The body of the request: only filters that are set. */
function sent(values: Partial<Values>): Schemas['WebhookChanges'] {
  const { filters, ...rest } = values;
  if (filters === undefined) return rest;
  const set = Object.entries(filters).filter(([, list]) => list.length > 0);
  return { ...rest, filters: Object.fromEntries(set) as Schemas['WebhookFilters'] };
}

const types = ['status', 'command', 'rollout', 'apply', 'session', 'sign_in'] as const;

/** The defaults of a format; programs and people want different things. */
function choose(form: FieldsProps<Values, Webhook>['form'], format: Values['format']): void {
  const forPeople = format !== 'standard';
  const wasForPeople = form.getValues().format !== 'standard';
  form.setFieldValue('format', format);
  if (format !== 'telegram') form.setFieldValue('chat_id', null);
  if (forPeople === wasForPeople) return;
  form.setFieldValue('group_secs', forPeople ? 15 : 0);
  form.setFieldValue('types', forPeople ? ['status'] : ['command', 'apply']);
}

function Fields({ form }: FieldsProps<Values, Webhook>): ReactNode {
  return (
    <>
      <Select
        label={text.format}
        data={Object.entries(text.formats).map(([value, label]) => ({ value, label }))}
        {...form.getInputProps('format')}
        onChange={(value) => choose(form, (value ?? 'standard') as Values['format'])}
      />
      <NameField form={form} hint={text.nameHint} />
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
      {form.getValues().format === 'telegram' && (
        <TextInput label={text.chatId} description={text.chatIdHint} required {...form.getInputProps('chat_id')} />
      )}
      {form.getValues().format !== 'standard' && (
        <>
          <NumberInput
            label={text.groupSecs}
            description={text.groupSecsHint}
            min={0}
            max={3600}
            {...form.getInputProps('group_secs')}
          />
          <Switch label={text.consoleLinks} {...form.getInputProps('console_links', { type: 'checkbox' })} />
        </>
      )}
      <Switch label={text.enabled} {...form.getInputProps('enabled', { type: 'checkbox' })} />
    </>
  );
}

const page = { type: 'webhook', role: 'admin', valuesOf, labels, Fields, withSecret: true } as const;

export const NewWebhookPage = newPage<Values, Webhook, Made>({
  ...page,
  title: text.add,
  create: ({ values, headers }) => webhooks.create({ values: sent(values), headers }),
});

export const EditWebhookPage = editPage<Values, Webhook>({
  ...page,
  one: webhooks.one,
  update: (id, { values, headers }) => webhooks.update(id, { values: sent(values), headers }),
});
