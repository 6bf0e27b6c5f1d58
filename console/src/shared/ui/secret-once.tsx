/** Something that is shown once and can be copied. It is held by the page alone: neither the cache nor the address has it. */
import { Alert, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { Sign } from './state.js';
import { text } from './ui.text.js';

interface SecretOnceProps {
  readonly title: string;
  /** What to do with it. */
  readonly children: ReactNode;
  readonly label: string;
  /** Null when it was shown before: a repeated request does not show it again. */
  readonly secret: string | null;
  /** Says that it is kept; the page goes on. */
  readonly onKept: () => void;
}

export function SecretOnce({ title, children, label, secret, onKept }: SecretOnceProps): ReactNode {
  return (
    <Alert color="orange" variant="light" icon={<Sign mood="warning" />} title={title} maw={640}>
      <Stack gap="sm">
        <Text size="sm">{secret === null ? text.shownBefore : children}</Text>
        {secret !== null && <CopyField label={label} value={secret} />}
        <Group>
          <Button size="xs" onClick={onKept}>
            {text.kept}
          </Button>
        </Group>
      </Stack>
    </Alert>
  );
}

const copiedMs = 2_000;

interface CopyFieldProps {
  readonly label: string;
  readonly value: string;
}

/** A value to copy, over plain HTTP too, where browsers have no clipboard for scripts. */
function CopyField({ label, value }: CopyFieldProps): ReactNode {
  const field = useRef<HTMLInputElement>(null);
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
  return (
    <Group gap="xs" align="flex-end" wrap="nowrap">
      <TextInput
        ref={field}
        label={label}
        value={value}
        readOnly
        flex={1}
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
        onFocus={({ currentTarget }) => currentTarget.select()}
      />
      <Button variant="default" onClick={() => void copy()} miw={90}>
        {copied ? text.copied : text.copy}
      </Button>
    </Group>
  );
}
