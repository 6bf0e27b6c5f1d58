/** What `/metrics` tells of REST requests. `request-records.ts` counts them. */
import { createHistogram, createTally, secondsBounds } from '../../../kernel/tallies.js';
import type { Histogram, Tally } from '../../../kernel/tallies.js';

export interface RequestCounts {
  /** By route, method and class of the status. */
  readonly seconds: Histogram;
  /** Requests of callers with a token, by the code of the error. */
  readonly refused: Tally;
}

export function createRequestCounts(): RequestCounts {
  return { seconds: createHistogram(secondsBounds), refused: createTally() };
}
