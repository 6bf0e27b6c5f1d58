/** Fields before and after, as audit entries and plans list them. */
import { Code, Table, Text } from '@mantine/core';
import { isValidElement } from 'react';
import type { ReactNode } from 'react';
import classes from './changes.module.css';
import { text } from './ui.text.js';

export interface Change {
  readonly path: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

interface ChangesProps {
  readonly changes: readonly Change[];
  /** Replace the headings, as in `yours` and `theirs`. */
  readonly headings?: { readonly before: string; readonly after: string };
}

export function Changes({ changes, headings = text }: ChangesProps): ReactNode {
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
              <Table.Td>
                <Code>{path}</Code>
              </Table.Td>
              <Table.Td data-side="before">{shown(before)}</Table.Td>
              <Table.Td data-side="after">{shown(after)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

/** A value of JSON as people read it, or what is there to be shown in its place. */
function shown(value: unknown): ReactNode {
  if (isValidElement(value)) return value;
  if (value === null || value === undefined)
    return (
      <Text span size="sm" c="dimmed" inherit>
        {text.notSet}
      </Text>
    );
  return typeof value === 'object' ? JSON.stringify(value, null, 1) : String(value);
}
