/** The form of an upstream, new or stored. */
import { NumberInput, Switch, TagsInput, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { editPage, newPage, type FieldsProps } from '../shared/forms/form-pages.js';
import { NameField } from '../shared/forms/name-field.js';
import { SecurityFields, securityLabels } from '../shared/forms/security-fields.js';
import { upstreams, type Upstream } from './upstreams.js';
import { text } from './upstreams.text.js';

type Values = Pick<
  Upstream,
  'name' | 'endpoint' | 'server_names' | 'health_check_interval_ms' | 'enabled' | 'tls' | 'reality'
>;

const defaultIntervalMs = 10_000;
const labels = {
  endpoint: text.endpoint,
  server_names: text.serverNames,
  health_check_interval_ms: text.intervalLabel,
  enabled: text.enabledLabel,
  ...securityLabels(''),
};

const valuesOf = (upstream: Upstream | undefined): Values => ({
  name: upstream?.name ?? '',
  endpoint: upstream?.endpoint ?? '',
  server_names: upstream?.server_names ?? [],
  health_check_interval_ms: upstream?.health_check_interval_ms ?? defaultIntervalMs,
  enabled: upstream?.enabled ?? true,
  tls: upstream?.tls ?? null,
  reality: upstream?.reality ?? null,
});

/** A stored one keeps its name, and a new one is enabled. */
function Fields({ form, resource }: FieldsProps<Values, Upstream>): ReactNode {
  const { tls, reality } = form.getValues();
  return (
    <>
      {resource === undefined && <NameField form={form} hint={text.nameHint} />}
      <TextInput label={text.endpoint} description={text.endpointHint} required {...form.getInputProps('endpoint')} />
      <TagsInput label={text.serverNames} description={text.serverNamesHint} {...form.getInputProps('server_names')} />
      <NumberInput
        label={text.intervalLabel}
        min={100}
        max={3_600_000}
        step={1_000}
        thousandSeparator=","
        {...form.getInputProps('health_check_interval_ms')}
      />
      <SecurityFields
        path=""
        tls={tls}
        reality={reality}
        onChoose={(chosen) => form.setValues({ tls: null, reality: null, ...chosen })}
        form={form}
      />
      {resource !== undefined && (
        <Switch label={text.enabledLabel} {...form.getInputProps('enabled', { type: 'checkbox' })} />
      )}
    </>
  );
}

const page = { type: 'l4_upstream', valuesOf, labels, Fields } as const;

export const NewUpstreamPage = newPage<Values, Upstream>({
  ...page,
  title: text.add,
  create: ({ values: { enabled: _always, ...values }, headers }) => upstreams.create({ values, headers }),
});

export const EditUpstreamPage = editPage<Values, Upstream>({
  ...page,
  one: upstreams.one,
  update: (id, { values: { name: _kept, ...values }, headers }) => upstreams.update(id, { values, headers }),
});
