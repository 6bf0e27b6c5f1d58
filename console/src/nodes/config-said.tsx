/** The configuration of a node in sentences, with links; and the differences of two generations, as sentences. */
import { List, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Fragment, useCallback, useMemo, type ReactNode } from 'react';
import { crud } from '../shared/api/crud.js';
import { Pager } from '../shared/ui/data-table.js';
import { formatCount, formatTime } from '../shared/ui/format.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { Section } from '../shared/ui/section.js';
import { pageSize } from '../shared/search.js';
import { changesOf, itemsOf, type ItemChange, type NodeOfHop } from './config-items.js';
import type { Ref, Words } from './config-parts.js';
import classes from './config-said.module.css';
import type { ConfigSnapshot } from './config-snapshot.js';
import { configText as text } from './config.text.js';
import { chainsQuery, type NodeConfig } from './nodes.js';

const credentials = crud('credential');

interface Paged {
  readonly page: number;
  readonly onPage: (page: number) => void;
}

/** Names of the nodes that a node dials, according to its chains as they are now. */
function useNodeOfHop(nodeId: string): NodeOfHop {
  const { data } = useQuery(chainsQuery(nodeId));
  return useCallback(
    (chainId, hopIndex, port) => {
      const hop = data?.get(chainId)?.hop_status[hopIndex];
      return hop?.listen_port === port ? { id: hop.node_id, name: hop.node_name } : undefined;
    },
    [data],
  );
}

const snapshotOf = ({ snapshot }: NodeConfig): ConfigSnapshot => snapshot as unknown as ConfigSnapshot;

export function SaidConfig({ config, page, onPage }: Paged & { readonly config: NodeConfig }): ReactNode {
  const nodeOfHop = useNodeOfHop(config.node_id);
  const items = useMemo(() => itemsOf(snapshotOf(config), nodeOfHop), [config, nodeOfHop]);
  const shown = items.slice((page - 1) * pageSize, page * pageSize);
  const groups = Object.entries(text.groups).map(([group, title]) => ({
    title,
    items: shown.filter((item) => item.group === group),
  }));
  return (
    <>
      {items.length === 0 && <Text size="sm">{text.nothing}</Text>}
      {groups.map(
        ({ title, items: some }) =>
          some.length > 0 && (
            <Section key={title} title={title}>
              <List size="sm" className={classes.sentences} listStyleType="none">
                {some.map(({ key, sentence }) => (
                  <List.Item key={key}>
                    <Said words={sentence} />
                  </List.Item>
                ))}
              </List>
            </Section>
          ),
      )}
      {items.length > pageSize && <Pager page={page} total={items.length} onPage={onPage} />}
    </>
  );
}

interface SaidDifferenceProps extends Paged {
  readonly before: NodeConfig;
  readonly after: NodeConfig;
}

export function SaidDifference({ before, after, page, onPage }: SaidDifferenceProps): ReactNode {
  const nodeOfHop = useNodeOfHop(after.node_id);
  const changes = useMemo(
    () => changesOf(itemsOf(snapshotOf(before), nodeOfHop), itemsOf(snapshotOf(after), nodeOfHop)),
    [before, after, nodeOfHop],
  );
  const [one, other] = [formatCount(before.generation), formatCount(after.generation)];
  const shown = changes.slice((page - 1) * pageSize, page * pageSize);
  return (
    <Section title={text.difference(one, other)}>
      {changes.length === 0 ? (
        <Text size="sm">
          {before.generation === after.generation ? text.noDifference(one, other) : text.onlySecrets(one, other)}
        </Text>
      ) : (
        <ul className={classes.changes}>
          {shown.map((change) => (
            <li key={`${change.kind} ${change.item.key}`} data-kind={change.kind}>
              <span className={classes.kind}>{text.kinds[change.kind]}</span>
              <SaidChange change={change} />
            </li>
          ))}
        </ul>
      )}
      {changes.length > pageSize && <Pager page={page} total={changes.length} onPage={onPage} />}
    </Section>
  );
}

function SaidChange({ change }: { readonly change: ItemChange }): ReactNode {
  return (
    <Stack gap={2}>
      <div>
        <Said words={change.item.sentence} />
      </div>
      {change.kind === 'changed' &&
        change.facts.map(({ name, from, to }) => (
          <div key={name} className={classes.fact}>
            <span>{name}:</span> <Said words={text.fromTo(from, to)} />
          </div>
        ))}
    </Stack>
  );
}

function Said({ words }: { readonly words: Words }): ReactNode {
  return words.map((part, index) => (
    <Fragment key={index}>{typeof part === 'string' ? part : <Linked {...part} />}</Fragment>
  ));
}

function Linked({ type, id, name }: Ref): ReactNode {
  if (name !== null) return <ResourceLink type={type} id={id} name={name} />;
  return (
    <>
      <NamedLink type={type} id={id} />
      {type === 'credential' && <CertificateEnd id={id} />}
    </>
  );
}

/** When the certificate that the node would get now ends. */
function CertificateEnd({ id }: { readonly id: string }): ReactNode {
  const { data } = useQuery(credentials.one(id));
  const ends = data?.certificate?.not_after;
  return ends !== undefined && ` (${text.ends(formatTime(ends, 'shortDate'))})`;
}
