/**
 * Something that is shown once and can be copied. Only the page holds it: neither the cache nor the address does.
 * Leaving the page asks first, until it is copied or the person says that it is kept.
 */
import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { useState, type ReactNode } from 'react';
import { useLoss } from '../forms/losses.js';
import { CopyField } from './copy-field.js';
import { Sign } from './state.js';
import { text } from './ui.text.js';

interface Secret {
  readonly label: string;
  /** Null when it was shown before: a repeated request does not show it again. */
  readonly value: string | null;
}

interface SecretsOnceProps {
  readonly title: string;
  /** What to do with them. */
  readonly children: ReactNode;
  readonly secrets: readonly Secret[];
  /** Called when the person says that they are kept. Absent where the page asks for that in another way. */
  readonly onKept?: () => void;
}

export function SecretsOnce({ title, children, secrets, onKept }: SecretsOnceProps): ReactNode {
  const [copied, setCopied] = useState<readonly string[]>([]);
  const settle = useLoss('secret', () =>
    secrets.filter(({ value }) => value !== null && !copied.includes(value)).map(({ label }) => label),
  );
  const shownBefore = secrets.every(({ value }) => value === null);
  return (
    <Alert color="orange" variant="light" icon={<Sign mood="warning" />} title={title} maw={640}>
      <Stack gap="sm">
        <Text size="sm">{shownBefore ? text.shownBefore : children}</Text>
        {secrets.map(
          ({ label, value }) =>
            value !== null && (
              <CopyField key={label} label={label} value={value} onCopied={() => setCopied([...copied, value])} />
            ),
        )}
        {onKept !== undefined && (
          <Group>
            <Button
              size="xs"
              onClick={() => {
                settle();
                onKept();
              }}
            >
              {text.kept}
            </Button>
          </Group>
        )}
      </Stack>
    </Alert>
  );
}

interface SecretOnceProps extends Omit<SecretsOnceProps, 'secrets'> {
  readonly label: string;
  readonly secret: string | null;
}

export function SecretOnce({ label, secret, ...rest }: SecretOnceProps): ReactNode {
  return <SecretsOnce {...rest} secrets={[{ label, value: secret }]} />;
}
