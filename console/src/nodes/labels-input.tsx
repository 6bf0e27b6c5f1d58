/** Labels in a form, each typed as `key:value`. */
import { TagsInput } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Node } from './nodes.js';
import { text } from './nodes.text.js';

interface LabelsInputProps {
  readonly value: Node['labels'];
  readonly onChange: (labels: Node['labels']) => void;
  readonly error?: ReactNode;
}

export function LabelsInput({ value, onChange, ...input }: LabelsInputProps): ReactNode {
  return (
    <TagsInput
      {...input}
      label={text.labelsColumn}
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
