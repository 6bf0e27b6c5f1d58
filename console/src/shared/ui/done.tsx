/** Says that something is done, and offers to take it back: the revert of its audit entry. */
import { Button, Group, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { api, dataOf, Refusal, type Done } from '../api/client.js';
import { sentenceOf } from './sentence.js';
import { text } from './ui.text.js';
import { Warnings } from './warnings.js';

const shownMs = 12_000;

/** A command, by its answer or by its audit entry. */
type Command = { readonly resourceId: string; readonly requestId: string } | { readonly entry: string };

/**
 * @param said what was done
 * @param done the commands, which the undo needs; absent for what cannot be taken back
 * @param warnings stay until they are closed
 */
export function sayDone(said: string, done?: Command | readonly Command[], warnings: readonly string[] = []): void {
  const id = notifications.show({
    autoClose: warnings.length === 0 && shownMs,
    withBorder: true,
    closeButtonProps: { 'aria-label': text.close },
    message: (
      <>
        <Group justify="space-between" wrap="nowrap">
          <Text size="sm">{said}</Text>
          {done !== undefined && (
            <Button
              size="xs"
              variant="light"
              flex="none"
              onClick={() => {
                notifications.hide(id);
                void undo('length' in done ? done : [done]);
              }}
            >
              {text.undo}
            </Button>
          )}
        </Group>
        <Warnings sentences={warnings} />
      </>
    ),
  });
}

/** Like `sayDone`, for a resource's own command. */
export const sayDoneOf = (
  said: string,
  { data, requestId }: Done<{ readonly id: string; readonly warnings?: readonly string[] }>,
): void => sayDone(said, { resourceId: data.id, requestId }, data.warnings);

/** @throws Refusal */
async function entryOf(command: Command): Promise<string> {
  if ('entry' in command) return command.entry;
  const { resourceId, requestId } = command;
  const query = { resource_id: resourceId, page_size: 10 };
  const { items } = await dataOf(api.GET('/api/audit', { params: { query } }));
  const entry = items.find(({ request_id: id }) => id === requestId);
  if (entry === undefined) throw new Refusal({ status: 404, code: 'not_found', sentence: text.undoFailed, requestId });
  return entry.id;
}

async function undo(commands: readonly Command[]): Promise<void> {
  try {
    for (const command of commands) {
      const id = await entryOf(command);
      await dataOf(api.POST('/api/audit/{id}/revert', { params: { path: { id } } }));
    }
    sayDone(text.undone);
  } catch (error) {
    sayRefused(error, text.undoFailed);
  }
}

/** Shows a refusal where no form does. Rethrows anything else. @param title what could not be done */
export function sayRefused(error: unknown, title?: string): void {
  if (!(error instanceof Refusal)) throw error;
  notifications.show({
    color: 'red',
    autoClose: false,
    closeButtonProps: { 'aria-label': text.close },
    title,
    message: sentenceOf(error),
  });
}
