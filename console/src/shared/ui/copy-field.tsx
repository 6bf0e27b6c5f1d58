/** A field with a text to copy. */
import { Button, Group, Textarea, TextInput } from '@mantine/core';
import { useRef, type ReactNode } from 'react';
import { useCopy } from './copy.js';
import { text } from './ui.text.js';

/** More are scrolled. */
const shownLines = 8;

interface CopyFieldProps {
  readonly label: string;
  readonly value: string;
  readonly description?: ReactNode;
}

export function CopyField({ label, value, description }: CopyFieldProps): ReactNode {
  const field = useRef<HTMLInputElement & HTMLTextAreaElement>(null);
  const [copied, copy] = useCopy(value, () => field.current?.select());
  const lines = value.trimEnd().split('\n').length;
  const shared = {
    ref: field,
    label,
    description,
    value,
    readOnly: true,
    flex: 1,
    miw: 0,
    styles: { input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 12 } },
  };
  return (
    <Group gap="xs" align="flex-end" wrap="nowrap">
      {lines === 1 ? (
        <TextInput {...shared} onFocus={({ currentTarget }) => currentTarget.select()} />
      ) : (
        <Textarea {...shared} rows={Math.min(lines, shownLines)} spellCheck={false} />
      )}
      <Button variant="default" onClick={copy} miw={90} aria-label={`${copied ? text.copied : text.copy}: ${label}`}>
        {copied ? text.copied : text.copy}
      </Button>
    </Group>
  );
}
