/** The list of HTTP routes. */
import { columnsOf } from '../shared/ui/data-table.js';
import { EnabledState } from '../shared/ui/enabled-state.js';
import { formatCount } from '../shared/ui/format.js';
import { listPage, nameColumn, updatedColumn } from '../shared/ui/list-page.js';
import { routes, type Route } from './routes.js';
import { text } from './routes.text.js';

const columns = columnsOf<Route>([
  nameColumn('route'),
  [text.host, (row) => `${row.host}${row.path_prefix}`],
  [text.state, (row) => <EnabledState enabled={row.enabled} />],
  [text.hops, (row) => formatCount(row.hops.length), { numeric: true, minor: true }],
  [text.backend, (row) => row.backend, { minor: true }],
  updatedColumn,
]);

export const RoutesPage = listPage({ of: routes, text, columns });
