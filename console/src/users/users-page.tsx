/** The list of users, for admins. */
import { columnsOf } from '../shared/ui/data-table.js';
import { none } from '../shared/ui/format.js';
import { listPage, nameColumn } from '../shared/ui/list-page.js';
import { When } from '../shared/ui/when.js';
import { users, type User } from './users.js';
import { text } from './users.text.js';

const columns = columnsOf<User>([
  nameColumn('user'),
  [text.displayName, (row) => row.display_name ?? none],
  [text.role, (row) => text.roles[row.role]],
  [text.email, (row) => row.email ?? none, { minor: true }],
  [text.created, (row) => <When at={row.created_at} />, { minor: true, sort: 'created_at' }],
]);

export const UsersPage = listPage({ of: users, text, columns, role: 'admin' });
