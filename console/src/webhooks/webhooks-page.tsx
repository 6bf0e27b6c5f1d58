/** The list of webhooks. */
import { columnsOf } from '../shared/ui/data-table.js';
import { none } from '../shared/ui/format.js';
import { listPage, nameColumn } from '../shared/ui/list-page.js';
import { StateOf } from '../shared/ui/state-of.js';
import { When } from '../shared/ui/when.js';
import { Lag, Outcome } from './webhook-state.js';
import { webhooks, type Webhook } from './webhooks.js';
import { text } from './webhooks.text.js';

const columns = columnsOf<Webhook>([
  nameColumn('webhook'),
  [text.state, (row) => <StateOf kind="webhook" is={row.state} />],
  [text.types, (row) => row.types.map((type) => text.shortTypes[type]).join(', '), { minor: true }],
  [text.lag, (row) => <Lag lag={row.lag} />, { numeric: true }],
  [
    text.lastDelivery,
    (row) => (row.last_delivery === null ? none : <Outcome {...row.last_delivery} />),
    { minor: true },
  ],
  [text.at, (row) => <When at={row.last_delivery?.at ?? null} />, { minor: true }],
]);

export const WebhooksPage = listPage({ of: webhooks, text, columns, role: 'admin' });
