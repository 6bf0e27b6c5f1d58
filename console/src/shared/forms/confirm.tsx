/** Asks before what cannot be undone, and before a delete: it says what will happen, and shows the refusal in place. */
import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Refusal } from '../api/client.js';
import { Problem } from '../ui/problem.js';
import { text } from './forms.text.js';

interface ConfirmProps {
  readonly opened: boolean;
  readonly title: string;
  /** What it will do. */
  readonly children: ReactNode;
  /** The words on the button. */
  readonly action: string;
  /** Does it; the dialog closes when it is done. */
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
}

export function Confirm({ opened, title, children, action, onConfirm, onClose }: ConfirmProps): ReactNode {
  const [working, setWorking] = useState(false);
  const [refused, setRefused] = useState<Refusal>();
  const close = (): void => {
    setRefused(undefined);
    onClose();
  };
  const confirm = async (): Promise<void> => {
    setWorking(true);
    setRefused(undefined);
    try {
      await onConfirm();
      close();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      setRefused(error);
    } finally {
      setWorking(false);
    }
  };
  return (
    <Modal opened={opened} onClose={close} title={title} centered>
      <Stack>
        <Text size="sm" component="div">
          {children}
        </Text>
        {refused !== undefined && <Problem error={refused} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            {text.cancel}
          </Button>
          <Button color="red" loading={working} onClick={() => void confirm()}>
            {action}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
