/** Fields before and after, as audit entries and plans list them. */
import { Code, Table, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { ListedType } from '../api/crud.js';
import classes from './changes.module.css';
import type { Change } from './differences.js';
import { NamedLink } from './named-link.js';
import { text } from './ui.text.js';

interface ChangesProps {
  readonly changes: readonly Change[];
  /** Replace the headings, as in `yours` and `theirs`. */
  readonly headings?: { readonly before: string; readonly after: string } | undefined;
  /** Shows what an id refers to by its name. */
  readonly named?: true;
  /** The words for a field; its path in the API when absent. */
  readonly words?: (path: string) => string;
}

/** Fields that hold the id of something else. */
const references: Readonly<Record<string, ListedType>> = {
  node_id: 'node',
  upstream_id: 'l4_upstream',
  credential_id: 'credential',
  x25519_credential_id: 'credential',
};

/** What a value refers to by an id, which says nothing to a reader: itself, or as a target. @param path of its field */
export function referenceIn(path: string, value: unknown): readonly [ListedType, string] | undefined {
  if (typeof value === 'object' && value !== null && 'upstream_id' in value) {
    return ['l4_upstream', String(value.upstream_id)];
  }
  const type = references[path.slice(path.lastIndexOf('.') + 1)];
  return type !== undefined && typeof value === 'string' && value !== '' ? [type, value] : undefined;
}

export function Changes({ changes, headings = text, named, words }: ChangesProps): ReactNode {
  if (changes.length === 0) return <Text size="sm">{text.noChanges}</Text>;
  return (
    <Table.ScrollContainer minWidth={0} type="native">
      <Table className={classes.changes} layout="fixed" verticalSpacing={4}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{text.field}</Table.Th>
            <Table.Th>{headings.before}</Table.Th>
            <Table.Th>{headings.after}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {changes.map(({ path, before, after }) => (
            <Table.Tr key={path}>
              <Table.Td>{words === undefined ? <Code>{path}</Code> : <span title={path}>{words(path)}</span>}</Table.Td>
              <Table.Td data-side="before">{shownValue(before, named && path)}</Table.Td>
              <Table.Td data-side="after">{shownValue(after, named && path)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

/** A value of JSON as people read it. @param path of its field: what it refers to by an id is shown by its name */
export function shownValue(value: unknown, path: string | undefined): ReactNode {
  const [type, id = ''] = (path === undefined ? undefined : referenceIn(path, value)) ?? [];
  if (value === null || value === undefined || (Array.isArray(value) && value.length === 0))
    return (
      <Text span size="sm" c="dimmed" inherit>
        {text.notSet}
      </Text>
    );
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join(', ');
  if (type !== undefined) return <NamedLink type={type} id={id} />;
  return typeof value === 'object' ? JSON.stringify(value, null, 1) : String(value);
}
