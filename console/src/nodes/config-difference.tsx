/** What one snapshot has that another has not, line by line, each change with the lines around it. */
import { Stack, Text } from '@mantine/core';
import { structuredPatch } from 'diff';
import { useMemo } from 'react';
import type { ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { formatCount } from '../shared/ui/format.js';
import { Section } from '../shared/ui/section.js';
import classes from './config-difference.module.css';
import { text } from './nodes.text.js';

type Snapshot = Schemas['NodeSnapshot'];

/** Lines around a change. */
const context = 4;
/** A comparison that takes longer is given up, so that the page stays responsive. */
const patienceMs = 1_500;

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

interface Hunk {
  /** Equal lines before it. */
  readonly skipped: number;
  /** Each begins with `+`, `-` or a space. */
  readonly lines: readonly string[];
}

/** @returns undefined when they differ too much */
function hunksOf(before: Snapshot, after: Snapshot): readonly Hunk[] | undefined {
  const options = { context, timeout: patienceMs };
  const patch = structuredPatch('', '', textOf(before), textOf(after), '', '', options);
  let line = 1;
  return patch?.hunks.map(({ oldStart, oldLines, lines }) => {
    const skipped = oldStart - line;
    line = oldStart + oldLines;
    return { skipped, lines };
  });
}

/** Each generation has its own number, which is no difference. */
function textOf({ snapshot: { generation: _number, ...configured } }: Snapshot): string {
  return `${JSON.stringify(configured, null, 2)}\n`;
}
