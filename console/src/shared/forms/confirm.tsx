/** Asks before a delete, or before what cannot be undone: says what will happen, and shows a refusal in place. */
import { Button, Group, Modal, Stack, Text, type ButtonProps } from '@mantine/core';
import type { ReactNode } from 'react';
import { useDialog } from '../ui/dialog.js';
import { Problem } from '../ui/problem.js';
import { useAttempt } from './attempt.js';
import { text } from './forms.text.js';

interface ConfirmProps {
  readonly opened: boolean;
  readonly title: string;
  /** What it will do. */
  readonly children: ReactNode;
  /** The words on the button. */
  readonly action: string;
  /** The words on the other button. */
  readonly cancel?: string;
  /** Does it; the dialog closes when it is done. Undefined when something stands in the way. */
  readonly onConfirm: (() => Promise<void>) | undefined;
  readonly onClose: () => void;
  /** Nothing is lost by it. */
  readonly mild?: boolean;
  /** The caller closes it, or shows the result in it. */
  readonly keepOpen?: boolean;
  /** It shows a table. */
  readonly wide?: boolean;
}

export function Confirm({
  opened,
  title,
  children,
  action,
  cancel = text.cancel,
  onConfirm,
  onClose,
  mild = false,
  keepOpen = false,
  wide = false,
}: ConfirmProps): ReactNode {
  const { working, refused, attempt, forget } = useAttempt();
  const close = (): void => {
    forget();
    onClose();
  };
  const confirm = (doIt: () => Promise<void>): Promise<void> =>
    attempt(async () => {
      await doIt();
      if (!keepOpen) close();
    });
  return (
    <Modal
      opened={opened}
      onClose={close}
      title={title}
      size={wide ? 'xl' : 'md'}
      closeButtonProps={{ 'aria-label': cancel }}
      centered
    >
      <Stack>
        <Text size="sm" component="div">
          {children}
        </Text>
        {refused !== undefined && <Problem error={refused} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            {cancel}
          </Button>
          {onConfirm !== undefined && (
            <Button color={mild ? undefined : 'red.9'} loading={working} onClick={() => void confirm(onConfirm)}>
              {action}
            </Button>
          )}
        </Group>
      </Stack>
    </Modal>
  );
}

interface AskFirstProps extends Omit<ConfirmProps, 'opened' | 'onClose'> {
  /** The question is closed, answered or not. */
  readonly onClose?: () => void;
  /** The word of the question in the address. */
  readonly dialog: string;
  readonly button?: ButtonProps;
}

/** A button that asks before it does something, in the words that it has itself. */
export function AskFirst({ dialog, button, onClose, ...question }: AskFirstProps): ReactNode {
  const { opened, open, close } = useDialog(dialog);
  return (
    <>
      <Button variant="default" {...button} onClick={open}>
        {question.action}
      </Button>
      <Confirm
        {...question}
        opened={opened}
        onClose={() => {
          onClose?.();
          close();
        }}
      />
    </>
  );
}
