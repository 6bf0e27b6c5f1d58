/** Entries in sentences, day by day: what was done is a link to the entry, which opens beside the list. */
import { Group, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { EntrySentence } from '../shared/audit/entry-sentence.js';
import { formatTime } from '../shared/ui/format.js';
import { TextLink } from '../shared/ui/links.js';
import type { AuditEntry } from './audit.js';
import classes from './audit.module.css';
import { text } from './audit.text.js';
import { byDay } from './days.js';

export function Entries({ entries }: { readonly entries: readonly AuditEntry[] }): ReactNode {
  return (
    <Stack gap="lg">
      {byDay(entries).map(({ day, entries: ofDay }) => (
        <section key={day} aria-label={day}>
          <Title order={2} pb="xs">
            {day}
          </Title>
          <ol className={classes.entries}>
            {ofDay.map((entry) => (
              <li key={entry.id}>
                <TextLink
                  to="."
                  search={(search) => ({ ...search, entry: entry.id, changes: undefined })}
                  resetScroll={false}
                  className={classes.at}
                  aria-label={`${text.entry} ${formatTime(entry.at, 'clock')}`}
                >
                  <time dateTime={entry.at} title={formatTime(entry.at)}>
                    {formatTime(entry.at, 'clock')}
                  </time>
                </TextLink>
                <Group gap="xs">
                  <EntrySentence entry={entry} />
                  {entry.reverted_by !== null && (
                    <Text span size="xs" c="dimmed">
                      {text.reverted}
                    </Text>
                  )}
                </Group>
              </li>
            ))}
          </ol>
        </section>
      ))}
    </Stack>
  );
}
