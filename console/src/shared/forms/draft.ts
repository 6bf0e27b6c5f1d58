/**
 * What is typed into a form of a new resource, kept in the browser until it is saved or discarded: it survives leaving,
 * a reload, and the end of the sign-in. Never for a form that holds a secret.
 */
import { readDraft } from './draft-shape.js';
import type { Values } from './fields.js';

export interface Draft<V> {
  read(): V | undefined;
  keep(values: V): void;
  drop(): void;
}

/**
 * @param of whose draft of which form
 * @param pattern the values of an untouched form: a draft of another shape, from another release, is ignored
 */
export function draftOf<V extends Values>(of: string, pattern: V): Draft<V> {
  const key = `draft ${of}`;
  return {
    read: () => readDraft(localStorage.getItem(key), pattern),
    keep: (values) => localStorage.setItem(key, JSON.stringify(values)),
    drop: () => localStorage.removeItem(key),
  };
}
