/**
 * An audit entry in a sentence, whose resource leads to its page; ids of other resources are shown by their names. Also as
 * the columns of a table of entries.
 */
import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { referenceIn } from '../ui/changes.js';
import { columnsOf } from '../ui/data-table.js';
import { TextLink } from '../ui/links.js';
import { NamedLink } from '../ui/named-link.js';
import { ResourceLink } from '../ui/resource-link.js';
import { When } from '../ui/when.js';
import { entryWords, valueWords, type Entry } from './entry-words.js';

export function EntrySentence({ entry }: { readonly entry: Entry }): ReactNode {
  const { who, did, noun, name, detail } = entryWords(entry);
  const { type, id } = entry.resource;
  return (
    <Text span size="sm" style={{ overflowWrap: 'anywhere' }}>
      <b>{who}</b> {did} {noun !== null && (name === null ? <ResourceLink type={type} id={id} name={noun} /> : noun)}{' '}
      {type === 'listener_policy' && id !== null && <NamedLink type="node" id={id.split('/')[0] ?? ''} />}{' '}
      {name !== null && <ResourceLink type={type} id={id} name={name} />}
      {detail !== null && <Detail entry={entry}>{detail}</Detail>}
    </Text>
  );
}

/** A reference that changed is shown by both names. */
function Detail({
  entry: { changes, changes_total: total },
  children,
}: {
  readonly entry: Entry;
  readonly children: string;
}) {
  const [change] = changes;
  const refersTo = (value: unknown) => (total === 1 ? referenceIn(change?.path ?? '', value) : undefined);
  if ((refersTo(change?.before) ?? refersTo(change?.after)) === undefined) return `: ${children}`;
  const end = (value: unknown): ReactNode => {
    const [type, id = ''] = refersTo(value) ?? [];
    return type === undefined ? valueWords(value) : <NamedLink type={type} id={id} />;
  };
  return (
    <>
      : {end(change?.before)} → {end(change?.after)}
    </>
  );
}

/** @param headings of when it was, which leads to the entry, and of what was done */
export const entryColumns = (when: string, what: string) =>
  columnsOf<Entry & { readonly id: string; readonly at: string }>([
    [
      when,
      (row) => (
        <TextLink to="/audit" search={{ entry: row.id }}>
          <When at={row.at} />
        </TextLink>
      ),
    ],
    [what, (row) => <EntrySentence entry={row} />],
  ]);
