/** The list of upstreams. */
import { columnsOf } from '../shared/ui/data-table.js';
import { EnabledState } from '../shared/ui/enabled-state.js';
import { formatMilliseconds, none } from '../shared/ui/format.js';
import { listPage, nameColumn, updatedColumn } from '../shared/ui/list-page.js';
import { StateOf } from '../shared/ui/state-of.js';
import { wordsOf } from '../shared/ui/states.js';
import { UsedBy } from '../shared/ui/used-by.js';
import { securityOf } from './security-of.js';
import { upstreams, type Upstream } from './upstreams.js';
import { text } from './upstreams.text.js';

const columns = columnsOf<Upstream>([
  nameColumn('l4_upstream'),
  [text.endpoint, (row) => row.endpoint, { cut: true }],
  [text.healthState, (row) => <StateOf kind="upstream" is={row.health} />],
  [text.state, (row) => (row.enabled ? none : <EnabledState enabled={false} />)],
  [text.usedBy, (row) => <UsedBy users={row.in_use_by} total={row.in_use_by_total} />, { cut: true }],
  [text.security, (row) => securityOf(row), { minor: true }],
  [text.interval, (row) => formatMilliseconds(row.health_check_interval_ms), { minor: true, numeric: true }],
  updatedColumn,
]);

export const UpstreamsPage = listPage({
  of: upstreams,
  text,
  columns,
  choices: [{ name: 'health', label: text.healthState, any: text.anyHealth, words: wordsOf('upstream') }],
});
