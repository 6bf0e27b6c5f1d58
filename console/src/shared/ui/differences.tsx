/** What two versions of a resource differ in, field by field, with the names of what they refer to. */
import type { ReactNode } from 'react';
import type { NamedType } from '../named.js';
import type { Change } from './changes.js';
import { NamedLink } from './named-link.js';

/** Fields that hold the id of something else. */
const references: Readonly<Record<string, NamedType>> = {
  node_id: 'node',
  upstream_id: 'l4_upstream',
  credential_id: 'credential',
  x25519_credential_id: 'credential',
};

/** @returns one change for each field that differs, by its path in the API */
export function differencesOf(before: unknown, after: unknown, path = ''): readonly Change[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (Array.isArray(before ?? after) && isListOfObjects(before) && isListOfObjects(after)) {
    const [old, now] = [before ?? [], after ?? []];
    return Array.from({ length: Math.max(old.length, now.length) }, (_, index) =>
      differencesOf(old[index], now[index], `${path}[${index}]`),
    ).flat();
  }
  if (
    isObject(before ?? after) &&
    (before === undefined || isObject(before)) &&
    (after === undefined || isObject(after))
  ) {
    const [old, now] = [before ?? {}, after ?? {}];
    return [...new Set([...Object.keys(old), ...Object.keys(now)])].flatMap((key) =>
      differencesOf(old[key], now[key], path === '' ? key : `${path}.${key}`),
    );
  }
  return [{ path, before: named(path, before), after: named(path, after) }];
}

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isListOfObjects = (value: unknown): value is readonly Fields[] | undefined =>
  value === undefined || (Array.isArray(value) && value.every(isObject));

/** An id as the name of what it is of, a list of words as words. */
function named(path: string, value: unknown): unknown {
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join(', ');
  const type = references[path.slice(path.lastIndexOf('.') + 1)];
  if (type === undefined || typeof value !== 'string' || value === '') return value;
  return (<NamedLink type={type} id={value} />) satisfies ReactNode;
}
