/**
 * The fleet as a picture, from one small answer of the API: each node while there are few, otherwise groups by a label,
 * of which one can be opened. A table shows the same. Implements "Topology" of `docs/contract/console.md#pages`.
 */
import { Checkbox, Group, Select, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useMemo, type ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { useMay } from '../shared/session.js';
import { Empty } from '../shared/ui/empty.js';
import { formatCount } from '../shared/ui/format.js';
import { TextLink } from '../shared/ui/links.js';
import { Page } from '../shared/ui/page.js';
import { NotYet } from '../shared/ui/page-skeleton.js';
import { State } from '../shared/ui/state.js';
import { useTyped } from '../shared/ui/typed.js';
import { Drawing, leastHeight } from './drawing.js';
import { mostRoomy } from './layout.js';
import { PictureTable } from './picture-table.js';
import { groupedBy, isMeant, mostDrawn, pictureOf } from './shapes.js';
import { labelKeysQuery, searchedQuery, topologyQuery } from './topology.js';
import classes from './topology.module.css';
import { ungrouped, type TopologySearch } from './topology-search.js';
import { text } from './topology.text.js';

export function TopologyPage(): ReactNode {
  const { data: labels, error, refetch } = useQuery(labelKeysQuery);
  return (
    <Page title={text.title}>
      {labels === undefined && <NotYet error={error} refetch={refetch} height={leastHeight} />}
      {labels?.nodes_total === 0 && <NoNodes />}
      {labels !== undefined && labels.nodes_total > 0 && <Fleet labels={labels} />}
    </Page>
  );
}

function NoNodes(): ReactNode {
  const mayAdd = useMay('operator');
  return (
    <Empty title={text.emptyTitle}>
      {text.empty} {mayAdd && <TextLink to="/join-tokens/new">{text.addNode}</TextLink>}
    </Empty>
  );
}

function Fleet({ labels: { items, nodes_total: total } }: { readonly labels: Schemas['LabelKeys'] }): ReactNode {
  const search: TopologySearch = useSearch({ from: '/topology' });
  const navigate = useNavigate({ from: '/topology' });
  const show = (changed: Partial<TopologySearch>, replace = false): void =>
    void navigate({ search: { ...search, page: undefined, ...changed }, replace });
  const keys = items.map(({ key }) => key);
  const groupBy = groupedBy(search.group_by, ungrouped, total, keys);
  const mustGroup = total > mostDrawn;
  const group = groupBy === undefined ? undefined : search.unlabelled ? '' : search.group;
  const view = { groupBy, group, onlyWrong: search.only !== undefined };
  const drawable = groupBy !== undefined || !mustGroup;
  const asked = topologyQuery(view, drawable);
  const { data: picture, error, refetch } = useQuery({ ...asked, select: (topology) => pictureOf(topology, group) });
  const { q = '' } = search;
  const held = useHeld(q, groupBy !== undefined && group === undefined ? groupBy : undefined);
  const meant = useMemo(
    () => (q === '' ? undefined : picture?.shapes.filter((shape) => isMeant(shape, q, held))),
    [picture, q, held],
  );
  return (
    <>
      <Group gap="xs">
        <Find q={q} onFind={(typed) => show({ q: typed }, true)} />
        <Select
          aria-label={text.groupBy}
          placeholder={text.groupBy}
          data={[...(mustGroup ? [] : [{ value: ungrouped, label: text.ungrouped }]), ...keys]}
          value={groupBy ?? ungrouped}
          onChange={(key) => show({ group_by: key ?? undefined, group: undefined, unlabelled: undefined })}
          w={180}
        />
        <Checkbox
          label={text.onlyWrong}
          checked={view.onlyWrong}
          onChange={({ currentTarget }) => show({ only: currentTarget.checked ? 'wrong' : undefined })}
        />
        {group !== undefined && groupBy !== undefined && (
          <Text size="sm">
            {group === '' ? text.withoutLabel(groupBy) : `${groupBy}: ${group}`} ·{' '}
            <TextLink to="." search={{ ...search, group: undefined, unlabelled: undefined, page: undefined }}>
              {text.allGroups(groupBy)}
            </TextLink>
          </Text>
        )}
        {meant !== undefined && (
          <Text size="sm" c="dimmed" aria-live="polite">
            {text.found(meant.length)}
          </Text>
        )}
      </Group>
      {!drawable && <Text size="sm">{text.noLabels(formatCount(mostDrawn))}</Text>}
      {picture === undefined && drawable && <NotYet error={error} refetch={refetch} height={leastHeight} />}
      {picture?.shapes.length === 0 && (
        <State mood={view.onlyWrong ? 'good' : 'idle'}>{view.onlyWrong ? text.nothingWrong : text.noSuchGroup}</State>
      )}
      {picture !== undefined && picture.shapes.length > 0 && (
        <div className={classes.page} data-beside={picture.shapes.length <= mostRoomy || undefined}>
          <Drawing key={`${groupBy} ${group}`} picture={picture} groupBy={groupBy} search={search} meant={meant} />
          <PictureTable picture={picture} groupBy={groupBy} search={search} onPage={(page) => show({ page })} />
        </div>
      )}
    </>
  );
}

function Find({ q, onFind }: { readonly q: string; readonly onFind: (typed: string | undefined) => void }): ReactNode {
  const find = useTyped(q, onFind);
  return <TextInput {...find} aria-label={text.find} placeholder={text.find} type="search" w={220} />;
}

/** The groups that hold nodes matching a search. @param key undefined: nothing is grouped */
function useHeld(q: string, key: string | undefined): ReadonlySet<string> {
  const { data } = useQuery(searchedQuery(key === undefined ? '' : q));
  return useMemo(
    () => new Set(key === undefined || q === '' ? [] : data?.items.map(({ labels }) => labels[key] ?? '')),
    [data, key, q],
  );
}
