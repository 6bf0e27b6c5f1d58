/** Adds machines by a new token, whose page shows the line to paste, once, and each machine as it joins. */
import { NumberInput, Text, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { newPage, type FieldsProps } from '../shared/forms/form-pages.js';
import { LabelsInput } from '../shared/forms/labels-input.js';
import { NameField } from '../shared/forms/name-field.js';
import { formatTime } from '../shared/ui/format.js';
import { TextLink } from '../shared/ui/links.js';
import { joinTokens, type CreatedJoinToken, type JoinToken } from './join-tokens.js';
import { text } from './join-tokens.text.js';

interface Values extends Record<string, unknown> {
  readonly name: string;
  readonly uses: number;
  readonly expires_in_hours: number;
  readonly labels: Record<string, string>;
  readonly name_prefix: string;
}

export const AddMachinesPage = newPage<Values, JoinToken, CreatedJoinToken>({
  type: 'join_token',
  title: text.add,
  undoable: false,
  labels: {
    uses: text.uses,
    expires_in_hours: text.hours,
    labels: text.labels,
    name_prefix: text.prefix,
  },
  valuesOf: () => ({
    name: text.presetName(`${formatTime(Date.now(), 'day')}, ${formatTime(Date.now(), 'minute')}`),
    uses: 1,
    expires_in_hours: 24,
    labels: {},
    name_prefix: '',
  }),
  create: ({ values: { name = '', name_prefix: prefix, ...values }, headers }) =>
    joinTokens.create({ values: { ...values, name, ...(prefix && { name_prefix: prefix }) }, headers }),
  Fields,
  withSecret: true,
});

function Fields({ form }: FieldsProps<Values, JoinToken>): ReactNode {
  const { labels } = form.getValues();
  return (
    <>
      <Text size="sm">{text.empty}</Text>
      <NameField form={form} hint={text.nameHint} />
      <NumberInput label={text.uses} description={text.usesHint} min={1} max={1_000} {...form.getInputProps('uses')} />
      <NumberInput label={text.hours} min={1} max={8_760} {...form.getInputProps('expires_in_hours')} />
      <LabelsInput
        {...form.getInputProps('labels')}
        label={text.labels}
        value={labels}
        onChange={(changed) => form.setFieldValue('labels', changed)}
      />
      <TextInput label={text.prefix} description={text.prefixHint} {...form.getInputProps('name_prefix')} />
      <Text size="sm">
        {text.withPskMeaning} <TextLink to="/nodes/new">{text.withPsk}</TextLink>
      </Text>
    </>
  );
}
