/** What agents have reported about a deleted node is deleted, even if the read store is away at the time. */
import { expect, test } from 'vitest';
import { forgetDeletedNodes } from '../../src/app/agents.js';
import type { Core } from '../../src/app/core.js';
import { joinIdOf } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { eventually } from '../support/eventually.js';

test('the reports of a deleted node are deleted once the read store is there again', async () => {
  const lines: unknown[] = [];
  const forgotten: string[] = [];
  let away = true;
  let revoked: (nodeId: string) => void = () => undefined;
  const core = {
    logger: { ...silentLogger, warn: (fields: object, message: string) => void lines.push({ ...fields, message }) },
    committed: { upToDate: () => true },
    delivery: {
      onRevoked: (listener: typeof revoked) => void (revoked = listener),
      node: (nodeId: string) => (nodeId === 'rekeyed' ? {} : undefined),
    },
  } as unknown as Core;
  const forget = async ([nodeId = '']: readonly string[]): Promise<void> => {
    if (away) throw new Error('away');
    forgotten.push(nodeId);
  };
  const forgetting = forgetDeletedNodes(core, [{ forget }]);
  for (const nodeId of ['rekeyed', joinIdOf('token'), 'deleted']) revoked(nodeId);
  await eventually(() => lines.length).toBe(1);
  away = false;
  await eventually(() => forgotten).toEqual(['deleted']);
  await forgetting.close();
  const message = 'the reports of a deleted node could not be deleted';
  expect(lines).toEqual([{ node_id: 'deleted', error: 'Error: away', message }]);
});
