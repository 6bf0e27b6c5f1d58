/** Says that something is done, and offers to take it back: the revert of its audit entry. */
import { Button, Group, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { api, dataOf, Refusal, type Done } from '../api/client.js';
import { sentenceOf } from './sentence.js';
import { text } from './ui.text.js';
import { Warnings } from './warnings.js';

const shownMs = 12_000;

/**
 * @param said what was done
 * @param done the command's answer, which the undo needs; absent for what cannot be taken back
 * @param warnings stay until they are closed
 */
export function sayDone(
  said: string,
  done?: { readonly resourceId: string; readonly requestId: string },
  warnings: readonly string[] = [],
): void {
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
                void undo(done.resourceId, done.requestId);
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

/** As `sayDone` of a resource's own command. */
export const sayDoneOf = (
  said: string,
  { data, requestId }: Done<{ readonly id: string; readonly warnings?: readonly string[] }>,
): void => sayDone(said, { resourceId: data.id, requestId }, data.warnings);

async function undo(resourceId: string, requestId: string): Promise<void> {
  try {
    const query = { resource_id: resourceId, page_size: 10 };
    const { items } = await dataOf(api.GET('/api/audit', { params: { query } }));
    const entry = items.find(({ request_id: id }) => id === requestId);
    if (entry === undefined)
      throw new Refusal({ status: 404, code: 'not_found', sentence: text.undoFailed, requestId });
    await dataOf(api.POST('/api/audit/{id}/revert', { params: { path: { id: entry.id } } }));
    sayDone(text.undone);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    notifications.show({
      color: 'red',
      autoClose: false,
      closeButtonProps: { 'aria-label': text.close },
      title: text.undoFailed,
      message: sentenceOf(error),
    });
  }
}
