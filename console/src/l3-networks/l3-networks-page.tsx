/** The list of L3 networks. */
import { columnsOf } from '../shared/ui/data-table.js';
import { EnabledState } from '../shared/ui/enabled-state.js';
import { formatCount } from '../shared/ui/format.js';
import { listPage, nameColumn, updatedColumn } from '../shared/ui/list-page.js';
import { networks, type L3Network } from './l3-networks.js';
import { text } from './l3-networks.text.js';

const columns = columnsOf<L3Network>([
  nameColumn('l3_network'),
  [text.state, (row) => <EnabledState enabled={row.enabled} />],
  [text.members, (row) => formatCount(row.members.length), { numeric: true }],
  [text.tunnels, (row) => formatCount(row.tunnels.length), { numeric: true }],
  [text.mtu, (row) => text.bytes(formatCount(row.mtu)), { numeric: true, minor: true }],
  updatedColumn,
]);

export const L3NetworksPage = listPage({ of: networks, text, columns });
