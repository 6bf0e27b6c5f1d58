/** The differences of two snapshots, line by line, each with the lines around it. */
import { Stack, Text } from '@mantine/core';
import { useMemo, type ReactNode } from 'react';
import { formatCount } from '../shared/ui/format.js';
import { Section } from '../shared/ui/section.js';
import classes from './config-difference.module.css';
import { hunksOf, type Snapshot } from './config-hunks.js';
import { configText as text } from './config.text.js';

interface ConfigDifferenceProps {
  readonly before: Snapshot;
  readonly after: Snapshot;
}

export function ConfigDifference({ before, after }: ConfigDifferenceProps): ReactNode {
  const hunks = useMemo(() => hunksOf(before, after), [before, after]);
  const [one, other] = [formatCount(before.generation), formatCount(after.generation)];
  return (
    <Section title={text.difference(one, other)}>
      {hunks === undefined ? (
        <Text size="sm">{text.tooDifferent}</Text>
      ) : hunks.length === 0 ? (
        <Text size="sm">{text.noDifference(one, other)}</Text>
      ) : (
        <Stack gap={0} className={classes.difference} tabIndex={0}>
          {hunks.map(({ skipped, lines }) => (
            <div key={lines.join('\n')}>
              {skipped > 0 && <div className={classes.skipped}>{text.unchangedLines(formatCount(skipped))}</div>}
              {lines.map((line, index) => (
                <div key={index} data-change={changes[line.charAt(0)]}>
                  {line}
                </div>
              ))}
            </div>
          ))}
        </Stack>
      )}
    </Section>
  );
}

const changes: Readonly<Record<string, 'added' | 'removed'>> = { '+': 'added', '-': 'removed' };
