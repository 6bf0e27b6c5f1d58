/**
 * Users as admins see them: list, one, create. The list is read from the committed accounts, which every instance holds in
 * memory to check tokens: a read model would be a second copy that can lag behind them. Implements
 * `docs/contract/rest.md#authentication-and-roles`.
 */
import type { CommandHandlers, UserListQuery } from '../commands/handlers-port.js';
import type { CommandContext } from '../commands/port.js';
import { present } from '../commands/resources.js';
import type { AccountCommand, UserState } from '../domain/accounts/user.js';
import { nameKey } from '../domain/resource/meta.js';
import { unreachable } from '../kernel/errors.js';
import type { AccountParts } from './parts.js';

type Users = Pick<CommandHandlers['accounts'], 'users' | 'user' | 'createUser'>;

export function userHandlers(parts: AccountParts): Users {
  const { gateway, view, ids, blindBodyHash, fields, passwords } = parts;

  return {
    async users(query) {
      const { items, total } = pageOf(view.accounts.users.values(), query);
      return { items: items.map((user) => fields.show(user)), total };
    },
    async user(id) {
      const user = view.accounts.users.get(id);
      return user === undefined ? undefined : fields.show(user);
    },
    async createUser(context, { username, password, role, ...given }) {
      const id = ids.next();
      const phc = await passwords.hash(password);
      const profile = fields.sealProfile({ id, display_name: null, email: null }, given);
      const sealed = fields.sealPassword(id, phc);
      const command: AccountCommand = {
        type: 'CreateUser',
        id,
        username,
        role,
        display_name: profile.display_name ?? null,
        email: profile.email ?? null,
        password: sealed,
        onlyIfFirst: false,
      };
      const outcome = await gateway.execute(command, blinded(context), ({ users }) => present(users.get(id)));
      return outcome.kind === 'done' ? { ...outcome, result: fields.show(outcome.result) } : outcome;
    },
  };

  /** The body holds a password, which its bare hash would let readers of the log guess much faster than Argon2id does. */
  function blinded(context: CommandContext): CommandContext {
    const { idempotency } = context;
    if (idempotency === undefined) return context;
    return { ...context, idempotency: { ...idempotency, body_hash: blindBodyHash(idempotency.body_hash) } };
  }
}

/** One page of the matching users, sorted, then by id as every list is. */
function pageOf(
  users: Iterable<UserState>,
  { q, sort, page, pageSize }: UserListQuery,
): { readonly items: readonly UserState[]; readonly total: number } {
  const wanted = nameKey(q ?? '');
  const matching = [...users].filter(({ username }) => username.includes(wanted));
  const key = keyOf(sort);
  const direction = sort.startsWith('-') ? -1 : 1;
  const byId = (a: UserState, b: UserState): number => compare(a.id, b.id);
  matching.sort((a, b) => direction * compare(key(a), key(b)) || byId(a, b));
  const skip = (page - 1) * pageSize;
  return { items: matching.slice(skip, skip + pageSize), total: matching.length };
}

function keyOf(sort: UserListQuery['sort']): (user: UserState) => string {
  switch (sort) {
    case 'name':
    case '-name':
      return ({ username }) => username;
    case 'created_at':
    case '-created_at':
      return ({ created_at }) => created_at;
    case 'updated_at':
    case '-updated_at':
      return ({ updated_at }) => updated_at;
    default:
      return unreachable(sort);
  }
}

/** User names are ASCII, and so are ids and times: code units and code points sort them alike. */
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
