/** The differences of two snapshots of a node, line by line. Pure. */
import { structuredPatch } from 'diff';
import type { Schemas } from '../shared/api/client.js';

export type Snapshot = Pick<Schemas['NodeSnapshot'], 'generation' | 'snapshot'>;

/** Lines around a change. */
const context = 4;
/** A comparison that takes longer is given up, so that the page stays responsive. */
const patienceMs = 1_500;

interface Hunk {
  /** Equal lines before it. */
  readonly skipped: number;
  /** Each begins with `+`, `-` or a space. */
  readonly lines: readonly string[];
}

/** @returns undefined when they differ too much */
export function hunksOf(before: Snapshot, after: Snapshot): readonly Hunk[] | undefined {
  const options = { context, timeout: patienceMs };
  const patch = structuredPatch('', '', textOf(before), textOf(after), '', '', options);
  let line = 1;
  return patch?.hunks.map(({ oldStart, oldLines, lines }) => {
    const skipped = oldStart - line;
    line = oldStart + oldLines;
    return { skipped, lines };
  });
}

/** Without the number of the generation, which always differs. */
function textOf({ snapshot: { generation: _number, ...configured } }: Snapshot): string {
  return `${JSON.stringify(configured, null, 2)}\n`;
}
