/** The rows of a list in a form: each with its fields and a button that removes it, and a button that adds one. */
import { ActionIcon, Button, Divider, Fieldset, Group, Stack, Text } from '@mantine/core';
import { Fragment, type ReactNode } from 'react';

interface ListEditorProps {
  readonly legend: string;
  readonly hint?: string;
  readonly count: number;
  readonly addLabel: string;
  readonly onAdd: () => void;
  /** The words of the button that removes one. */
  readonly removeLabel: (place: string) => string;
  readonly onRemove: (index: number) => void;
  /** A refusal of the list as a whole. */
  readonly error?: ReactNode;
  /** The fields of one. */
  readonly children: (index: number) => ReactNode;
}

export function ListEditor(props: ListEditorProps): ReactNode {
  const { legend, hint, count, addLabel, onAdd, removeLabel, onRemove, error, children } = props;
  return (
    <Fieldset legend={legend} miw={0}>
      <Stack gap="md">
        {hint !== undefined && (
          <Text size="sm" c="dimmed">
            {hint}
          </Text>
        )}
        {Array.from({ length: count }, (_, index) => (
          <Fragment key={index}>
            {index > 0 && <Divider />}
            <Group gap="sm" wrap="nowrap" align="flex-start">
              <Group gap="sm" flex={1} miw={0} align="flex-start">
                {children(index)}
              </Group>
              <ActionIcon
                variant="default"
                size={36}
                mt={24}
                aria-label={removeLabel(String(index + 1))}
                onClick={() => onRemove(index)}
              >
                ×
              </ActionIcon>
            </Group>
          </Fragment>
        ))}
        {error !== undefined && error !== null && (
          <Text size="sm" c="red" role="alert">
            {error}
          </Text>
        )}
        <Group>
          <Button size="xs" variant="default" onClick={onAdd}>
            {addLabel}
          </Button>
        </Group>
      </Stack>
    </Fieldset>
  );
}
