/** What the audit shows of events that carry secrets (`docs/contract/rest.md#audit`). */
import { expect, it } from 'vitest';
import { describeCommand } from '../../src/domain/audit/describe.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { streams } from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import { sealed } from '../support/fleet.js';

const describeAccountEvent = (type: string, data: object): ReturnType<typeof describeCommand> =>
  describeCommand({
    stream: streams.accounts,
    events: [
      {
        id: uuidFromName('event'),
        stream: streams.accounts,
        type,
        data: { user_id: uuidFromName('user'), ...data } as JsonObject,
        revision: 1,
        position: 1,
        metadata: {
          command: { id: uuidFromName('command'), index: 0, count: 1 },
          actor: { type: 'user', id: uuidFromName('user'), name: 'admin' },
          request_id: 'test',
          occurred_at: '2026-01-01T00:00:00.000Z',
          schema_version: 1,
        },
      },
    ],
  });

it('a profile update names the fields and masks both values of each', () => {
  const changes = {
    email: { from: null, to: sealed },
    display_name: { from: sealed, to: { ...sealed, ct: 'b3RoZXI' } },
  };
  const described = describeAccountEvent('UserProfileUpdated', { changes });
  expect(described?.changes).toEqual([
    { path: 'email', before: '***', after: '***' },
    { path: 'display_name', before: '***', after: '***' },
  ]);
  expect(JSON.stringify(described)).not.toContain(sealed.ct);
});

it('a password change masks both values', () => {
  const described = describeAccountEvent('UserPasswordChanged', { password: { from: sealed, to: sealed } });
  expect(described?.changes).toEqual([{ path: 'password', before: '***', after: '***' }]);
});
