/** The props of a field that may be left empty, for what is null in the API then. */
import type { ChangeEvent } from 'react';
import type { FormOf } from './resource-form.js';

type Typed = string | number | ChangeEvent<HTMLInputElement | HTMLTextAreaElement>;

/** @param path of the field, such as `nodes.0.multiplex_port` */
export function nullable<V>(form: FormOf<V>, path: string) {
  return {
    ...form.getInputProps(path),
    value: form.getInputProps(path).value ?? '',
    onChange(typed: Typed) {
      const value = typeof typed === 'object' ? typed.currentTarget.value : typed;
      form.setFieldValue(path, (value === '' ? null : value) as never);
    },
  };
}
