/** What the console does with fleet files. A document may hold secrets: it is kept by the page alone, never by the cache. */
import { api, dataOf, doneOf } from '../shared/api/client.js';
import type { Done, Schemas } from '../shared/api/client.js';

export type Plan = Schemas['FleetPlan'];
export type Step = Schemas['FleetPlanStep'];
export type Applied = Schemas['FleetApplied'];
export type Request = Schemas['FleetApplyRequest'];

/** What the document would change. @throws Refusal with line, column and path of each mistake */
export const planFile = ({ issue_psks: _psks, ...body }: Request): Promise<Plan> =>
  dataOf(api.POST('/api/fleet/plan', { body }));

/** Carries a plan out, or nothing when it is no longer the same. @throws Refusal */
export const applyFile = (body: Request, etag: string, idempotencyKey: string): Promise<Done<Applied>> =>
  doneOf(
    api.POST('/api/fleet/apply', {
      params: { header: { 'if-match': `"${etag}"`, 'idempotency-key': idempotencyKey } },
      body,
    }),
  );

/** Documents of all sets, or of one; null for what no set owns. @throws Refusal */
export const exportFiles = async (set?: string | null): Promise<readonly Schemas['FleetDocument'][]> => {
  const query = set === undefined ? {} : { set: set ?? '' };
  return (await dataOf(api.GET('/api/fleet/export', { params: { query } }))).documents;
};
