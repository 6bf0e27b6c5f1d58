/**
 * The handlers of reverts of profiles. The rules are in `src/domain/accounts/revert.ts`; the fleet's reverts are in
 * `src/commands/revert.ts`. Implements `docs/contract/domain.md#audit-and-revert`.
 */
import type { RevertHandlers } from '../commands/handlers-port.js';
import type { Gateway, ProjectionWait } from '../commands/port.js';
import type { AuditTrail } from '../commands/revert.js';
import { auditHolds } from '../commands/revert.js';
import type { Accounts } from '../domain/accounts/accounts.js';
import { decideAccounts } from '../domain/accounts/accounts.js';
import { accountEvent, accountEvents, userType } from '../domain/accounts/declaration.js';
import { changedFields } from '../domain/accounts/revert.js';
import type { AccountCommand } from '../domain/accounts/user.js';
import { ServiceError } from '../kernel/errors.js';
import type { RecordedCommand } from '../kernel/event.js';
import { lastEvent, streams } from '../kernel/event.js';

export interface ProfileRevertOptions {
  readonly gateway: Gateway<Accounts, AccountCommand>;
  readonly projections: ProjectionWait;
  readonly audit: AuditTrail;
}

export function createProfileRevertHandlers({ gateway, projections, audit }: ProfileRevertOptions): RevertHandlers {
  const subjectOf = ({ events: [first] }: RecordedCommand): string => accountEvent(first).data.user_id;

  /** The newest edit of each field that the entry set and that was edited since. */
  async function changedBy(entry: RecordedCommand): Promise<ReadonlyMap<string, string>> {
    const event = accountEvent(entry.events[0]);
    if (event.type !== 'UserProfileUpdated') return new Map();
    const { user_id, changes } = event.data;
    const seen = await gateway.read(({ users, revision }) => {
      const user = users.get(user_id);
      return { fields: user === undefined ? [] : changedFields(user, changes), revision: revision.value };
    });
    await auditHolds(projections, streams.accounts, seen.revision);
    const found = new Map<string, string>();
    if (seen.fields.length === 0) return found;
    for await (const { id } of audit.about(userType, user_id, lastEvent(entry).position)) {
      const command = await audit.command(id);
      const later = command === undefined ? undefined : accountEvent(command.events[0]);
      if (later?.type !== 'UserProfileUpdated') continue;
      for (const field of seen.fields) if (later.data.changes[field] && !found.has(field)) found.set(field, id);
      if (found.size === seen.fields.length) break;
    }
    return found;
  }

  const commandOf = async (entry: RecordedCommand): Promise<AccountCommand> => ({
    type: 'RevertUserProfile',
    entry,
    changedBy: await changedBy(entry),
  });

  return {
    async revert(context, entry) {
      const reverting = { ...context, revertOf: entry.events[0].metadata.command.id };
      return gateway.execute(await commandOf(entry), reverting, ({ users }) => ({
        name: users.get(subjectOf(entry))?.username ?? null,
      }));
    },
    async preview(entry) {
      const command = await commandOf(entry);
      return gateway.read((accounts) => {
        const decision = decideAccounts(accounts, command);
        if (!decision.ok) throw new ServiceError(decision.error.code, decision.error.message);
        const id = subjectOf(entry);
        const resource = { type: userType, id, name: accounts.users.get(id)?.username ?? null };
        return decision.value.flatMap((event) =>
          event.type === 'UserProfileUpdated'
            ? accountEvents.UserProfileUpdated.audit(event).changes.map((change) => ({ resource, ...change }))
            : [],
        );
      });
    },
  };
}
