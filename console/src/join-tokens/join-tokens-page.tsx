/** The list of join tokens; ended ones stay in it for 30 days. */
import { columnsOf } from '../shared/ui/data-table.js';
import { listPage, nameColumn } from '../shared/ui/list-page.js';
import { StateOf } from '../shared/ui/state-of.js';
import { When } from '../shared/ui/when.js';
import { joinTokens, type JoinToken } from './join-tokens.js';
import { text } from './join-tokens.text.js';
import { tokenState } from './machine-state.js';

const columns = columnsOf<JoinToken>([
  nameColumn('join_token'),
  [text.state, (row) => <StateOf kind="joinToken" is={tokenState(row)} />],
  [text.used, (row) => text.usedOf(row.used, row.uses), { numeric: true }],
  [text.expires, (row) => <When at={row.expires_at} />],
  [text.madeBy, (row) => row.created_by.name, { minor: true }],
]);

export const JoinTokensPage = listPage({ of: joinTokens, text, columns });
