/** The list of upstreams. */
import { columnsOf } from '../shared/ui/data-table.js';
import { EnabledState } from '../shared/ui/enabled-state.js';
import { formatMilliseconds } from '../shared/ui/format.js';
import { listPage, nameColumn, updatedColumn } from '../shared/ui/list-page.js';
import { HealthOfUpstream, securityOf } from './upstream-state.js';
import { upstreams, type Upstream } from './upstreams.js';
import { text } from './upstreams.text.js';

const columns = columnsOf<Upstream>([
  nameColumn('l4_upstream'),
  [text.endpoint, (row) => row.endpoint],
  [text.healthState, (row) => <HealthOfUpstream health={row.health} />],
  [text.state, (row) => <EnabledState enabled={row.enabled} />],
  [text.security, (row) => securityOf(row), { minor: true }],
  [text.interval, (row) => formatMilliseconds(row.health_check_interval_ms), { minor: true, numeric: true }],
  updatedColumn,
]);

export const UpstreamsPage = listPage({ of: upstreams, text, columns });
