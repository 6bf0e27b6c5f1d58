/** Commands of fleet files. A document may hold secrets, so only the page keeps it, never the cache. */
import { queryOptions } from '@tanstack/react-query';
import { api, dataOf, doneOf, type Done, type Schemas } from '../shared/api/client.js';
import { read } from '../shared/api/read.js';
import { previewOf, type RolloutPreview, type RolloutQuery } from '../shared/rollout-preview.js';

export type Plan = Schemas['FleetPlan'];
export type Step = Schemas['FleetPlanStep'];
export type Applied = Schemas['FleetApplied'];
export type Request = Schemas['FleetApplyRequest'];

/** What the document would change. @throws Refusal with line, column and path of each mistake */
export const planFile = ({ issue_psks: _psks, ...body }: Request): Promise<Plan> =>
  dataOf(api.POST('/api/fleet/plan', { body }));

/** Carries out a plan, or nothing if the plan is no longer the same. @throws Refusal */
export const applyFile = (
  body: Request,
  etag: string,
  idempotencyKey: string,
  query: RolloutQuery,
): Promise<Done<Applied>> =>
  doneOf(
    api.POST('/api/fleet/apply', {
      params: {
        query,
        header: { 'if-match': `"${etag}"`, 'idempotency-key': idempotencyKey },
      },
      body,
    }),
  );

/** The waves in which an apply would go. @throws Refusal that it would get */
export const tryApply = (body: Request, query: RolloutQuery, signal: AbortSignal): Promise<RolloutPreview> =>
  previewOf(api.POST('/api/fleet/apply', { params: { query: { ...query, dry_run: 'true' } }, body, signal }));

export type FleetSet = Schemas['FleetSet'];
export type DriftItem = Schemas['FleetDriftItem'];
export type Reverted = Schemas['FleetReverted'];

/** The sets, with how much of each has drifted. */
export const setsQuery = read('fleet', '/api/fleet/sets', {}, { follows: 'all' });

/** The resources of a set that were changed by hand. */
export const driftQuery = (set: string) =>
  read('fleet', '/api/fleet/sets/{set}/drift', { path: { set } }, { follows: 'all' });

/** A past apply with a page of its steps. */
export const applyQuery = (id: string, page = 1) =>
  read('fleet', '/api/fleet/applies/{id}', { path: { id }, query: { page } }, { follows: ['audit'] });

/** What taking an apply back would write. @throws Refusal that it would get */
export const revertPlanQuery = (id: string) =>
  queryOptions({
    queryKey: ['fleet', 'revert', id],
    queryFn: ({ signal }) =>
      dataOf(
        api.POST('/api/fleet/applies/{id}/revert', { params: { path: { id }, query: { dry_run: 'true' } }, signal }),
      ),
    meta: { follows: 'all' },
  });

/** The waves in which taking it back would go. @throws Refusal that it would get */
export async function tryRevertApply(id: string, query: RolloutQuery, signal: AbortSignal): Promise<RolloutPreview> {
  const params = { path: { id }, query: { ...query, dry_run: 'true' } } as const;
  const { waves = [], warnings = [] } = await dataOf(api.POST('/api/fleet/applies/{id}/revert', { params, signal }));
  return { waves, warnings };
}

/** Takes an apply back. @throws Refusal */
export const revertApply = (id: string, query: RolloutQuery): Promise<Reverted> =>
  dataOf(api.POST('/api/fleet/applies/{id}/revert', { params: { path: { id }, query } }));

/** Releases a set. @throws Refusal */
export const releaseSet = (set: string): Promise<Done<Schemas['FleetReleased']>> =>
  doneOf(api.POST('/api/fleet/sets/{set}/release', { params: { path: { set } } }));
