/**
 * The order of the test files: those that wait longest first, although they are short, then the others that mostly wait, so
 * that the many quick files at the end leave no worker without work. Otherwise as vitest has them: by how long they took, or
 * else by their size.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const first = [
  'agent-check/mistakes',
  'console/every-page',
  'e2e/cut-off-by-a-change',
  'e2e/rolling-upgrade',
  'packages/packages',
  'e2e/lost-read-models',
  'e2e/moved-stores',
];

/** Their files mostly wait, for programs that they start and for stores. */
const waiting =
  /\/test\/(?:agent-check|console|e2e|golden|invented-resource|machines|maintenance|packages|start|storage|typed-client)\//;

const rankOf = ({ moduleId, project }: TestSpecification): number => {
  // Not in between: a process that is shared ends before a file that is alone.
  if (project.name === 'alone') return first.length + 2;
  const rank = first.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
  if (rank >= 0) return rank;
  return waiting.test(moduleId) ? first.length : first.length + 1;
};

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}
