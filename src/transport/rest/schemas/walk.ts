/**
 * Walks over lists: `after=start` begins one, `after=<next>` continues after the last item. `next` names that place and
 * is bound to the query's filters. Implements `docs/contract/rest.md#envelope`, `after`.
 */
import { createHash } from 'node:crypto';
import { ServiceError } from '../../../kernel/errors.js';

/** A walk has no numbered pages. @throws ServiceError `invalid_request` */
export function refusePageBeside({ page }: { readonly page?: number | undefined }): void {
  if (page !== undefined) throw new ServiceError('invalid_request', 'page: expected none beside after');
}

/** A place in a list: the values by which it is ordered, of the last item that was shown. */
export type PlaceParts = readonly string[];

/** What a `next` is bound to: filters and order. */
export type WalkBound = { readonly [name: string]: unknown };

const bindingOf = (bound: WalkBound): string =>
  createHash('sha256')
    .update(JSON.stringify(Object.entries(bound).sort(([a], [b]) => (a < b ? -1 : 1))))
    .digest('base64url')
    .slice(0, 12);

/** @returns undefined at the start @throws ServiceError `invalid_request` */
export function placeAfter(text: string, bound: WalkBound, parts: number): PlaceParts | undefined {
  if (text === 'start') return undefined;
  const refuse = (why: string): ServiceError => new ServiceError('invalid_request', `after: ${why}`);
  const [binding, ...place] = partsOf(text);
  if (binding === undefined || place.length !== parts || cursorOf(place, binding) !== text) {
    throw refuse('expected start, or the next of an answer');
  }
  if (binding !== bindingOf(bound)) throw refuse('this next belongs to a list with other filters or another order');
  return place;
}

/** @returns the `next` behind a place */
export const nextAfter = (place: PlaceParts, bound: WalkBound): string => cursorOf(place, bindingOf(bound));

const cursorOf = (place: PlaceParts, binding: string): string =>
  Buffer.from(JSON.stringify([binding, ...place])).toString('base64url');

function partsOf(text: string): readonly string[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    return Array.isArray(parts) && parts.every((part) => typeof part === 'string') ? parts : [];
  } catch {
    return [];
  }
}
