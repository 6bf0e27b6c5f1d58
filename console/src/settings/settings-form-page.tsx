/** The form of the settings. */
import { NumberInput, Switch } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Done } from '../shared/api/client.js';
import { ListEditor } from '../shared/forms/list-editor.js';
import { nullable } from '../shared/forms/nullable.js';
import { ResourceForm, type FormOf } from '../shared/forms/resource-form.js';
import type { Save } from '../shared/api/crud.js';
import { ResourceSelect } from '../shared/forms/resource-select.js';
import { RolloutPolicySelect } from '../shared/forms/rollout-policy-select.js';
import { settingsId, settingsQuery } from '../shared/settings.js';
import { sayDoneOf } from '../shared/ui/done.js';
import { Page } from '../shared/ui/page.js';
import { NotYet } from '../shared/ui/page-skeleton.js';
import { overrideChanges, updateSettings, type Override, type Settings } from './settings.js';
import { text } from './settings.text.js';

type Values = Omit<Settings, 'version'>;
type Stored = Settings & { readonly id: string };

const labels = {
  multiplex: text.multiplex,
  multiplex_port: text.multiplexPort,
  heartbeat_interval_secs: text.heartbeat,
  metrics_interval_secs: text.metrics,
  offline_after_secs: text.offlineAfter,
  rollout_policy: text.rolloutPolicy,
  upgrade_rollout_policy: text.upgradePolicy,
  nodes: text.overrides,
  'nodes.*.node_id': text.node,
  'nodes.*.multiplex_port': text.port,
};

function valuesOf(stored: Stored | undefined): Values {
  if (stored === undefined) throw new Error('the form of the settings needs them');
  const { id: _id, version: _version, ...values } = stored;
  return values;
}

export function EditSettingsPage(): ReactNode {
  const navigate = useNavigate();
  const { data: settings, error, refetch } = useQuery(settingsQuery);
  if (settings === undefined) return <NotYet error={error} refetch={refetch} />;
  const back = (): void => void navigate({ to: '/settings' });
  const save = async ({ values, headers }: Save<Values>): Promise<Done<Stored>> => {
    const { nodes, ...rest } = values;
    const changes = nodes === undefined ? rest : { ...rest, nodes: overrideChanges(settings.nodes, nodes) };
    const done = await updateSettings({ values: changes, headers });
    return { ...done, data: { ...done.data, id: settingsId } };
  };
  return (
    <Page title={text.editTitle}>
      <ResourceForm<Values, Stored>
        resource={{ ...settings, id: settingsId }}
        valuesOf={valuesOf}
        labels={labels}
        save={save}
        onSaved={(done) => {
          sayDoneOf(text.saved, done);
          back();
        }}
        onCancel={back}
        saveLabel={text.save}
      >
        {(form) => (
          <>
            <NumberInput label={text.heartbeat} min={1} {...form.getInputProps('heartbeat_interval_secs')} />
            <NumberInput label={text.metrics} min={1} {...form.getInputProps('metrics_interval_secs')} />
            <NumberInput
              label={text.offlineAfter}
              description={text.offlineHint}
              min={1}
              {...nullable(form, 'offline_after_secs')}
            />
            <Switch label={text.multiplex} {...form.getInputProps('multiplex', { type: 'checkbox' })} />
            <Port form={form} path="multiplex_port" hint={text.multiplexPortHint} />
            <RolloutPolicySelect
              label={text.rolloutPolicy}
              description={text.rolloutPolicyHint}
              placeholder={text.atOnce}
              {...form.getInputProps('rollout_policy')}
            />
            <RolloutPolicySelect
              label={text.upgradePolicy}
              description={text.upgradePolicyHint}
              placeholder={text.atOnce}
              {...form.getInputProps('upgrade_rollout_policy')}
            />
            <Overrides form={form} />
          </>
        )}
      </ResourceForm>
    </Page>
  );
}

interface PortProps {
  readonly form: FormOf<Values>;
  readonly path: string;
  readonly hint?: string;
  readonly width?: number;
}

function Port({ form, path, hint, width }: PortProps): ReactNode {
  return (
    <NumberInput
      label={text.multiplexPort}
      description={hint}
      w={width}
      min={1}
      max={65_535}
      {...nullable(form, path)}
    />
  );
}

function Overrides({ form }: { readonly form: FormOf<Values> }): ReactNode {
  const { nodes } = form.getValues();
  const added: Override = { node_id: '', multiplex: true, multiplex_port: null };
  return (
    <ListEditor
      legend={text.overrides}
      count={nodes.length}
      addLabel={text.addOverride}
      onAdd={() => form.insertListItem('nodes', added)}
      removeLabel={text.removeOverride}
      onRemove={(index) => form.removeListItem('nodes', index)}
      error={form.errors['nodes']}
    >
      {(index) => (
        <>
          <ResourceSelect
            kind={{ type: 'node' }}
            label={text.node}
            except={nodes.map(({ node_id: id }) => id)}
            {...form.getInputProps(`nodes.${index}.node_id`)}
          />
          <Port form={form} path={`nodes.${index}.multiplex_port`} width={130} />
          <Switch
            label={text.multiplexing}
            mt={32}
            {...form.getInputProps(`nodes.${index}.multiplex`, { type: 'checkbox' })}
          />
        </>
      )}
    </ListEditor>
  );
}
