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
  /** By the button or by hand. */
  readonly onCopied?: () => void;
}

export function CopyField({ label, value, description, onCopied }: CopyFieldProps): ReactNode {
  const field = useRef<HTMLInputElement & HTMLTextAreaElement>(null);
  const [copied, copy] = useCopy(value, { failed: () => field.current?.select(), done: onCopied });
  const lines = value.trimEnd().split('\n').length;
  const shared = {
    ref: field,
    label,
    description,
    value,
    readOnly: true,
    onCopy: onCopied,
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
