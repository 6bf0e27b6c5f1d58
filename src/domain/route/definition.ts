/**
 * The rules that the hops of a route must keep by themselves. REST checks bodies with them, `decide.ts` whole routes.
 * Implements `docs/contract/domain.md#l4-chain`: a node at most once, in a route too.
 */
import { repeatedNodes } from '../node/hops.js';
import type { RouteHop } from './route.js';

interface RouteProblem {
  readonly path: readonly ['hops', number, 'node_id'];
  readonly message: string;
}

/** The problems of hops; those of a body may be absent. */
export function* routeProblems(hops: readonly Pick<RouteHop, 'node_id'>[] = []): Generator<RouteProblem> {
  for (const { index, earlier } of repeatedNodes(hops)) {
    const message = `expected each node at most once in a route; this one is already hops[${earlier}]`;
    yield { path: ['hops', index, 'node_id'], message };
  }
}
