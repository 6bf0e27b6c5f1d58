/** The form of a rollout policy, new or stored. */
import { NumberInput, Select, SegmentedControl, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { editPage, newPage, type FieldsProps } from '../shared/forms/form-pages.js';
import { LabelsInput } from '../shared/forms/labels-input.js';
import { ListEditor } from '../shared/forms/list-editor.js';
import { NameField } from '../shared/forms/name-field.js';
import { nullable } from '../shared/forms/nullable.js';
import type { FormOf } from '../shared/forms/resource-form.js';
import { newWave, sentOf, valuesOf, type PolicyValues } from './policy-values.js';
import { rolloutPolicies, type RolloutPolicy } from './rollout-policies.js';
import { text } from './rollout-policies.text.js';

/** As the form needs its values. */
type Values = PolicyValues & Record<string, unknown>;

const labels = {
  waves: text.waves,
  'waves.*.nodes': text.nodes,
  'waves.*.labels': text.labels,
  bake_secs: text.bake,
  apply_timeout_secs: text.timeout,
  max_failed: text.maxFailed,
  max_lost: text.maxLost,
  on_failure: text.onFailure,
  confirm_secs: text.confirm,
};

function Fields({ form }: FieldsProps<Values, RolloutPolicy>): ReactNode {
  return (
    <>
      <NameField form={form} hint={text.nameHint} />
      <Waves form={form} />
      <NumberInput label={text.bake} description={text.bakeHint} min={0} {...form.getInputProps('bake_secs')} />
      <NumberInput
        label={text.timeout}
        description={text.timeoutHint}
        min={5}
        {...form.getInputProps('apply_timeout_secs')}
      />
      <TextInput label={text.maxFailed} description={text.maxHint} {...form.getInputProps('max_failed')} />
      <TextInput label={text.maxLost} description={text.lostHint} {...form.getInputProps('max_lost')} />
      <Select
        label={text.onFailure}
        data={Object.entries(text.reactions).map(([value, label]) => ({ value, label }))}
        {...form.getInputProps('on_failure')}
      />
      <NumberInput label={text.confirm} description={text.confirmHint} {...nullable(form, 'confirm_secs')} />
    </>
  );
}

function Waves({ form }: { readonly form: FormOf<Values> }): ReactNode {
  const { waves } = form.getValues();
  return (
    <ListEditor
      legend={text.waves}
      hint={text.wavesHint}
      count={waves.length}
      addLabel={text.addWave}
      onAdd={() => form.insertListItem('waves', newWave)}
      removeLabel={text.removeWave}
      onRemove={(index) => form.removeListItem('waves', index)}
      error={form.errors['waves']}
    >
      {(index) => (
        <>
          <SegmentedControl
            mt={24}
            aria-label={text.by}
            data={[
              { value: 'nodes', label: text.byNodes },
              { value: 'labels', label: text.byLabels },
            ]}
            {...form.getInputProps(`waves.${index}.by`)}
          />
          {waves[index]?.by === 'labels' ? (
            <LabelsInput
              {...form.getInputProps(`waves.${index}.labels`)}
              value={waves[index].labels}
              onChange={(changed) => form.setFieldValue(`waves.${index}.labels`, changed as never)}
            />
          ) : (
            <TextInput
              label={text.nodes}
              description={text.nodesHint}
              {...form.getInputProps(`waves.${index}.nodes`)}
            />
          )}
        </>
      )}
    </ListEditor>
  );
}

const page = { type: 'rollout_policy', valuesOf, labels, Fields } as const;

export const NewRolloutPolicyPage = newPage<Values, RolloutPolicy>({
  ...page,
  title: text.add,
  create: ({ values, ...save }) => rolloutPolicies.create({ ...save, values: sentOf(values) }),
});

export const EditRolloutPolicyPage = editPage<Values, RolloutPolicy>({
  ...page,
  one: rolloutPolicies.one,
  update: (id, { values, ...save }) => rolloutPolicies.update(id, { ...save, values: sentOf(values) }),
});
