/** A text to copy, over plain HTTP too, where browsers have no clipboard for scripts. */
import { Button, Group, Textarea, TextInput } from '@mantine/core';
import { useEffect, useRef, useState, type ReactNode, type RefObject } from 'react';
import { text } from './ui.text.js';

const copiedMs = 2_000;
/** More are scrolled. */
const shownLines = 8;

interface CopyFieldProps {
  readonly label: string;
  readonly value: string;
  readonly description?: ReactNode;
}

export function CopyField({ label, value, description }: CopyFieldProps): ReactNode {
  const field = useRef<HTMLInputElement & HTMLTextAreaElement>(null);
  const [copied, copy] = useCopy(field, value);
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

function useCopy(
  field: RefObject<HTMLInputElement | HTMLTextAreaElement | null>,
  value: string,
): [boolean, () => void] {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), copiedMs);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async (): Promise<void> => {
    if (window.isSecureContext) {
      await navigator.clipboard.writeText(value).then(
        () => setCopied(true),
        () => field.current?.select(),
      );
      return;
    }
    field.current?.select();
    setCopied(document.execCommand('copy'));
  };
  return [copied, () => void copy()];
}
