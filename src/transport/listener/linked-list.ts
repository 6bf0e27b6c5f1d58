/**
 * A list that removes from the middle in constant time, for queues whose members leave in any order. A `Set` finds its
 * first member only after passing over all that were removed before it.
 */
export interface LinkedList<T> {
  first: Place<T> | undefined;
  last: Place<T> | undefined;
  size: number;
}

/** A value's place in a list. */
export interface Place<T> {
  readonly value: T;
  /** Undefined once the value has left its list. */
  list: LinkedList<T> | undefined;
  before: Place<T> | undefined;
  after: Place<T> | undefined;
}

export function linkedList<T>(): LinkedList<T> {
  return { first: undefined, last: undefined, size: 0 };
}

/** Adds a value at the end. */
export function append<T>(list: LinkedList<T>, value: T): Place<T> {
  const place: Place<T> = { value, list, before: list.last, after: undefined };
  if (list.last === undefined) list.first = place;
  else list.last.after = place;
  list.last = place;
  list.size += 1;
  return place;
}

/** Removes a value from its list, if it is still in it. */
export function remove<T>(place: Place<T>): void {
  const { list, before, after } = place;
  if (list === undefined) return;
  if (before === undefined) list.first = after;
  else before.after = after;
  if (after === undefined) list.last = before;
  else after.before = before;
  list.size -= 1;
  place.list = undefined;
  place.before = undefined;
  place.after = undefined;
}

/** The values in order. The current one may leave the list meanwhile. */
export function* valuesOf<T>(list: LinkedList<T>): Generator<T, void> {
  for (let place = list.first; place !== undefined;) {
    const { after, value } = place;
    yield value;
    place = after;
  }
}
