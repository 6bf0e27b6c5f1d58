/** The name of a resource, which its form begins with. */
import { TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { text } from '../ui/ui.text.js';

interface NameFieldProps {
  // What Mantine's forms give for any field.
  readonly form: { getInputProps(path: string): object };
  readonly hint: string;
}

export function NameField({ form, hint }: NameFieldProps): ReactNode {
  return (
    <TextInput
      label={text.name}
      description={hint}
      required
      autoFocus
      autoComplete="off"
      {...form.getInputProps('name')}
    />
  );
}
