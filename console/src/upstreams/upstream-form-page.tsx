/** The form of an upstream, new or stored. */
import { NumberInput, SegmentedControl, Input, Select, Stack, Switch, TagsInput, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { ResourceForm } from '../shared/forms/resource-form.js';
import type { FormOf } from '../shared/forms/resource-form.js';
import { sayDoneOf } from '../shared/ui/done.js';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
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
  tls: text.tls,
  'tls.server_name': text.tlsServerName,
  'tls.spki_pins_sha256': text.tlsPins,
  reality: text.reality,
  'reality.outer': text.realityOuter,
  'reality.public_key': text.realityKey,
  'reality.server_name': text.realityServerName,
  'reality.short_id': text.realityShortId,
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
  const { data: upstream, error, refetch } = useQuery(upstreamQuery(id));
  if (upstream === undefined) return error && <Problem error={error} retry={() => void refetch()} />;
  const back = (): void => void navigate({ to: '/upstreams/$id', params: { id } });
  return (
    <Page title={text.editTitle(upstream.name)}>
      <ResourceForm<Changes, Upstream>
        resource={upstream}
        valuesOf={changesOf}
        labels={labels}
        save={(changes) => updateUpstream(id, changes)}
        onSaved={(done) => {
          sayDoneOf(text.saved(done.data.name), done);
          back();
        }}
        onCancel={back}
        saveLabel={text.save}
      >
        {(form) => (
          <>
            <UpstreamFields form={form} />
            <Switch label={text.enabledLabel} {...form.getInputProps('enabled', { type: 'checkbox' })} />
          </>
        )}
      </ResourceForm>
    </Page>
  );
}

type Security = 'none' | 'tls' | 'reality';

const emptyTls: NonNullable<Upstream['tls']> = { server_name: '', spki_pins_sha256: [] };
const emptyReality: NonNullable<Upstream['reality']> = { outer: 'tcp', public_key: '', server_name: '', short_id: '' };

/** The fields that a new and a stored upstream have in common. */
function UpstreamFields<V extends Omit<NewValues, 'name'>>({ form: given }: { readonly form: FormOf<V> }): ReactNode {
  const form = given as unknown as FormOf<Omit<NewValues, 'name'>>;
  const { tls, reality } = form.getValues();
  const security: Security = tls !== null ? 'tls' : reality !== null ? 'reality' : 'none';
  const choose = (chosen: Security): void => {
    form.setValues({
      tls: chosen === 'tls' ? emptyTls : null,
      reality: chosen === 'reality' ? emptyReality : null,
    });
  };
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
      <Input.Wrapper label={text.security} error={form.errors['tls'] ?? form.errors['reality']}>
        <div>
          <SegmentedControl<Security>
            aria-label={text.security}
            value={security}
            onChange={choose}
            data={[
              { value: 'none', label: text.plain },
              { value: 'tls', label: text.tls },
              { value: 'reality', label: text.reality },
            ]}
          />
        </div>
      </Input.Wrapper>
      {tls !== null && (
        <Stack gap="sm">
          <TextInput label={text.tlsServerName} required {...form.getInputProps('tls.server_name')} />
          <TagsInput
            label={text.tlsPins}
            description={text.tlsPinsHint}
            required
            {...form.getInputProps('tls.spki_pins_sha256')}
          />
        </Stack>
      )}
      {reality !== null && (
        <Stack gap="sm">
          <Select
            label={text.realityOuter}
            data={['tcp', 'quic']}
            allowDeselect={false}
            {...form.getInputProps('reality.outer')}
          />
          <TextInput label={text.realityKey} required {...form.getInputProps('reality.public_key')} />
          <TextInput label={text.realityServerName} required {...form.getInputProps('reality.server_name')} />
          <TextInput label={text.realityShortId} {...form.getInputProps('reality.short_id')} />
        </Stack>
      )}
    </>
  );
}
