/** Asks before leaving a page would lose something, and says what. One for the whole console. */
import { List } from '@mantine/core';
import { useBlocker, type ShouldBlockFn } from '@tanstack/react-router';
import { useSyncExternalStore, type ReactNode } from 'react';
import { Confirm } from './confirm.js';
import { text } from './forms.text.js';
import { letGo, losses, mayLeave, questions } from './losses.js';

/** Dialogs, tabs and filters of a page are in the rest of its address. */
const shouldBlockFn: ShouldBlockFn = async ({ current, next }) => {
  if (current.pathname === next.pathname) return false;
  if (!(await mayLeave())) return true;
  letGo();
  return false;
};
const enableBeforeUnload = (): boolean => losses().length > 0;

export function LeaveGuard(): ReactNode {
  useBlocker({ shouldBlockFn, enableBeforeUnload });
  const question = useSyncExternalStore(questions.subscribe, questions.now);
  return (
    <Confirm
      opened={question !== undefined}
      title={text.leave}
      action={text.leaveNow}
      cancel={text.stay}
      onConfirm={async () => question?.answer(true)}
      onClose={() => question?.answer(false)}
      keepOpen
    >
      <List size="sm">
        {question?.losses.map(({ kind, names }) => (
          <List.Item key={`${kind} ${names.join()}`}>{text.lost[kind](names.join(', '))}</List.Item>
        ))}
      </List>
    </Confirm>
  );
}
