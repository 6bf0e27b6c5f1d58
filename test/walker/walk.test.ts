/**
 * Walks the OpenAPI document with everything that can be wrong about a request. Implements nothing of its own: what each
 * answer must be follows from `docs/contract/rest.md#envelope` and `docs/contract/rest.md#errors`.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { problemsOf, type Case } from './case.js';
import { casesOf } from './cases.js';
import { startWalkedService, type WalkedService } from './site.js';
import { secrets } from '../support/openapi-values.js';

let service: WalkedService;
beforeAll(async () => {
  service = await startWalkedService();
});
afterAll(() => service.close());

/** So many documents of one user are carried out or wait at a time; one more would be a 429. */
const atOnce = 5;

function shown({ what, draft }: Case): string {
  return `${what} [${draft.role} ${draft.method} ${draft.path.slice(0, 80)} ${draft.query.join('&').slice(0, 80)} ${String(draft.body ?? '').slice(0, 200)}]`;
}

test('every request with something wrong is refused as the contract says, and leaves nothing behind', async () => {
  const cases = [...casesOf(service.site)];
  const failures: string[] = [];
  const statuses = new Map<number, number>();
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < cases.length; index = next++) {
      const one = cases[index]!;
      const requestId = `walk-${index}`;
      const answer = await service.send(one.draft, requestId);
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      const problems = [...problemsOf(one, answer)];
      if (answer.headers['x-request-id'] !== requestId) problems.push('another request id');
      if (secrets.some((secret) => answer.text.includes(secret))) problems.push('repeats what was sent');
      if (problems.length > 0) failures.push(`${shown(one)}\n    ${problems.join('; ')}: ${answer.text.slice(0, 300)}`);
    }
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: atOnce }, worker));
  const seconds = (performance.now() - began) / 1_000;
  console.info(
    `${cases.length} requests to ${service.site.operations.length} operations in ${seconds.toFixed(1)} s:`,
    [...statuses]
      .toSorted(([a], [b]) => a - b)
      .map(([status, count]) => `${count} × ${status}`)
      .join(', '),
  );
  expect(failures, `${failures.length} failures`).toEqual([]);
  const appended = (await service.appended()).map(({ type, requestId }) => {
    const one = cases[Number(requestId.replace('walk-', ''))];
    return `${type} by ${one === undefined ? requestId : shown(one)}`;
  });
  expect(appended).toEqual([]);
  const logged = service.logged();
  expect(logged).toContain('walk-');
  for (const secret of secrets) expect(logged).not.toContain(secret);
  expect(cases.length).toBeGreaterThan(5_000);
}, 180_000);

test('every status that the walk is answered is one that the document lists for the operation', () => {
  const cases = [...casesOf(service.site)];
  const unlisted = cases.filter(({ listed, expected }) => listed !== undefined && !listed.includes(expected.status));
  expect(unlisted.map((one) => `${one.expected.status}: ${shown(one)}`)).toEqual([]);
  expect(cases.filter(({ listed }) => listed !== undefined).length).toBeGreaterThan(5_000);
});
