/** One upstream: what it is, how the nodes that use it see it, what it carried, and the chains that end there. */
import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { securityText } from '../shared/forms/security.text.js';
import { CopyText } from '../shared/ui/copy-text.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { Empty } from '../shared/ui/empty.js';
import { EnabledState } from '../shared/ui/enabled-state.js';
import { formatCount, formatMilliseconds, none } from '../shared/ui/format.js';
import { HistorySection } from '../shared/ui/history.js';
import { TextLink } from '../shared/ui/links.js';
import { ListTable } from '../shared/ui/list-table.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { ListOfUsers } from '../shared/ui/used-by.js';
import { ResourcePage, resourcePage } from '../shared/ui/resource-page.js';
import { Section } from '../shared/ui/section.js';
import { State } from '../shared/ui/state.js';
import { StateOf } from '../shared/ui/state-of.js';
import { text as shared } from '../shared/ui/ui.text.js';
import { When } from '../shared/ui/when.js';
import { pageSize } from '../shared/search.js';
import { securityOf } from './security-of.js';
import { awayQuery, upstreamHealthQuery, upstreams, worstFirst, type Upstream } from './upstreams.js';
import { text } from './upstreams.text.js';

export const UpstreamPage = resourcePage(upstreams, ({ resource: upstream }) => (
  <ResourcePage
    of={upstreams}
    resource={upstream}
    aside={
      <>
        <StateOf kind="upstream" is={upstream.health} />
        {!upstream.enabled && <EnabledState enabled={false} />}
      </>
    }
    line={<CopyText label={text.endpoint} value={upstream.endpoint} />}
    removeMeaning={text.removeMeaning}
    usedBy={upstream.in_use_by}
    facts={{
      [text.serverNames]: upstream.server_names.join(', ') || null,
      [text.security]: securityOf(upstream),
      ...securityFacts(upstream),
      [text.interval]: formatMilliseconds(upstream.health_check_interval_ms),
    }}
  >
    <HistorySection type="l4_upstream" id={upstream.id} usual="1h" />
    <Health id={upstream.id} />
    <UsedBy upstream={upstream} />
  </ResourcePage>
));

/** What nodes check about it, or dial it with. */
function securityFacts({ tls, reality }: Upstream): Readonly<Record<string, ReactNode>> {
  if (tls !== null) {
    return { [securityText.serverName]: tls.server_name, [securityText.pins]: tls.spki_pins_sha256.join(', ') };
  }
  if (reality === null) return {};
  return {
    [securityText.carriedBy]: reality.outer,
    [securityText.serverName]: reality.server_name,
    [securityText.publicKey]: reality.public_key,
    [securityText.shortId]: reality.short_id || none,
  };
}

type Report = Schemas['UpstreamHealth'] & { readonly isAway: boolean };

const columns = columnsOf<Report>([
  [text.node, (row) => <ResourceLink type="node" id={row.node_id} name={row.node_name} />, { cut: true }],
  [text.state, (row) => <HealthState {...row} />],
  [text.since, (row) => <When at={row.since} />, { minor: true }],
  [text.requests, (row) => (row.requests === null ? none : formatCount(row.requests)), { numeric: true }],
  [text.errors, (row) => (row.errors === null ? none : formatCount(row.errors)), { numeric: true }],
  [
    text.p99,
    (row) => (row.latency_p99_ms === null ? none : formatMilliseconds(row.latency_p99_ms)),
    { numeric: true, minor: true },
  ],
]);

function HealthState({ healthy, isAway }: Pick<Report, 'healthy' | 'isAway'>): ReactNode {
  if (healthy === null) return <State mood="idle">{text.unknown}</State>;
  const word = healthy ? text.healthy : text.unhealthy;
  if (isAway) return <State mood="idle">{shared.listener.lastKnown(word)}</State>;
  return <State mood={healthy ? 'good' : 'bad'}>{word}</State>;
}

function Health({ id }: { readonly id: string }): ReactNode {
  const query = useQuery({
    ...upstreamHealthQuery(id),
    select: ({ items }) => ({ items: worstFirst(items), total: items.length }),
  });
  const [page, onPage] = useState(1);
  const { data } = query;
  const { data: away = [] } = useQuery(awayQuery);
  const items = data?.items
    .slice((page - 1) * pageSize, page * pageSize)
    .map((report): Report => ({ ...report, isAway: away.includes(report.node_id) }));
  const shown = data && items && { ...data, items };
  return (
    <Section title={text.health}>
      <ListTable
        caption={text.healthCaption}
        columns={columns}
        query={{ ...query, data: shown }}
        rowKey={({ node_id: nodeId }) => nodeId}
        paging={{ page, onPage }}
        empty={<Empty title={text.noHealth}>{text.noHealthHint}</Empty>}
      />
    </Section>
  );
}

function UsedBy({
  upstream: { id, in_use_by: users, in_use_by_total: total },
}: {
  readonly upstream: Upstream;
}): ReactNode {
  return (
    <Section title={text.usedBy}>
      {users.length === 0 ? (
        text.unused
      ) : (
        <ListOfUsers
          users={users}
          more={
            total > users.length && (
              <TextLink to="/chains" search={{ upstream_id: id }}>
                {text.more(formatCount(total - users.length))}
              </TextLink>
            )
          }
        />
      )}
    </Section>
  );
}
