/**
 * The order of the test files: those that wait longest first, although they are short, so that no worker is left with one
 * of them at the end. The others as vitest has them: by how long they took, or else by their size.
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

const rankOf = ({ moduleId }: TestSpecification): number => {
  const rank = first.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
  return rank < 0 ? first.length : rank;
};

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}
