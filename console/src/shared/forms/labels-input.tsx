/** Labels in a form, each typed as `key:value`. */
import { TagsInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { text } from './forms.text.js';

type Labels = Readonly<Record<string, string>>;

interface LabelsInputProps {
  readonly label?: string;
  readonly value: Labels;
  readonly onChange: (labels: Record<string, string>) => void;
  readonly error?: ReactNode;
}

export function LabelsInput({ value, onChange, label = text.labels, ...input }: LabelsInputProps): ReactNode {
  return (
    <TagsInput
      {...input}
      label={label}
      description={text.labelsHint}
      value={Object.entries(value).map(([key, one]) => (one === '' ? key : `${key}:${one}`))}
      onChange={(typed) => onChange(Object.fromEntries(typed.map(labelOf)))}
    />
  );
}

/** The first colon separates, as in the API's filter. */
function labelOf(typed: string): [key: string, value: string] {
  const [key = '', ...value] = typed.split(':');
  return [key.trim(), value.join(':').trim()];
}
