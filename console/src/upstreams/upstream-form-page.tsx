/** The form of an upstream, new or stored. */
import { NumberInput, Switch, TagsInput, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { EditPage } from '../shared/forms/edit-page.js';
import { ResourceForm } from '../shared/forms/resource-form.js';
import type { FormOf } from '../shared/forms/resource-form.js';
import { SecurityFields, securityLabels } from '../shared/forms/security-fields.js';
import { sayDoneOf } from '../shared/ui/done.js';
import { Page } from '../shared/ui/page.js';
import { createUpstream, updateUpstream, upstreamQuery } from './upstreams.js';
import type { Upstream } from './upstreams.js';
import { text } from './upstreams.text.js';

type Values = Pick<
  Upstream,
  'endpoint' | 'server_names' | 'health_check_interval_ms' | 'enabled' | 'tls' | 'reality' | 'name'
>;
type NewValues = Omit<Values, 'enabled'>;
type Changes = Omit<Values, 'name'>;

const defaultIntervalMs = 10_000;
const labels = {
  name: text.name,
  endpoint: text.endpoint,
  server_names: text.serverNames,
  health_check_interval_ms: text.intervalLabel,
  enabled: text.enabledLabel,
  ...securityLabels(''),
};

export function NewUpstreamPage(): ReactNode {
  const navigate = useNavigate();
  return (
    <Page title={text.newTitle}>
      <ResourceForm<NewValues, Upstream>
        valuesOf={() => ({
          name: '',
          endpoint: '',
          server_names: [],
          health_check_interval_ms: defaultIntervalMs,
          tls: null,
          reality: null,
        })}
        labels={labels}
        save={createUpstream}
        onSaved={(done) => {
          sayDoneOf(text.created_(done.data.name), done);
          void navigate({ to: '/upstreams/$id', params: { id: done.data.id } });
        }}
        onCancel={() => void navigate({ to: '/upstreams' })}
        saveLabel={text.add}
      >
        {(form) => (
          <>
            <TextInput
              label={text.name}
              description={text.nameHint}
              required
              data-autofocus
              {...form.getInputProps('name')}
            />
            <UpstreamFields form={form} />
          </>
        )}
      </ResourceForm>
    </Page>
  );
}

const changesOf = (upstream: Upstream | undefined): Changes => {
  if (upstream === undefined) throw new Error('the form of a stored upstream needs it');
  const { endpoint, server_names, health_check_interval_ms, enabled, tls, reality } = upstream;
  return { endpoint, server_names, health_check_interval_ms, enabled, tls, reality };
};

export function EditUpstreamPage(): ReactNode {
  const { id } = useParams({ from: '/upstreams/$id/edit' });
  const navigate = useNavigate();
  return (
    <EditPage<Changes, Upstream>
      query={useQuery(upstreamQuery(id))}
      text={text}
      valuesOf={changesOf}
      labels={labels}
      save={(changes) => updateUpstream(id, changes)}
      back={() => void navigate({ to: '/upstreams/$id', params: { id } })}
    >
      {(form) => (
        <>
          <UpstreamFields form={form} />
          <Switch label={text.enabledLabel} {...form.getInputProps('enabled', { type: 'checkbox' })} />
        </>
      )}
    </EditPage>
  );
}

/** The fields that a new and a stored upstream have in common. */
function UpstreamFields<V extends Omit<NewValues, 'name'>>({ form: given }: { readonly form: FormOf<V> }): ReactNode {
  const form = given as unknown as FormOf<Omit<NewValues, 'name'>>;
  const { tls, reality } = form.getValues();
  return (
    <>
      <TextInput label={text.endpoint} description={text.endpointHint} required {...form.getInputProps('endpoint')} />
      <TagsInput label={text.serverNames} description={text.serverNamesHint} {...form.getInputProps('server_names')} />
      <NumberInput
        label={text.intervalLabel}
        min={100}
        max={3_600_000}
        step={1_000}
        thousandSeparator=" "
        {...form.getInputProps('health_check_interval_ms')}
      />
      <SecurityFields
        path=""
        tls={tls}
        reality={reality}
        onChoose={(chosen) => form.setValues({ tls: null, reality: null, ...chosen })}
        form={form}
      />
    </>
  );
}
