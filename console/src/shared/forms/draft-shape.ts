/** Whether text that a browser kept is a draft of a form as it is today. Pure. */
import type { Values } from './fields.js';

/** @param pattern the values of an untouched form @returns undefined if it is not a draft */
export function readDraft<V extends Values>(kept: string | null, pattern: V): V | undefined {
  if (kept === null) return undefined;
  try {
    const read: unknown = JSON.parse(kept);
    const fits = isObject(read) && Object.entries(pattern).every(([name, of]) => isLike(read[name], of));
    return fits ? (read as V) : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a value has the fields of the pattern, and lists where it has lists, with entries shaped like its first entry. */
function isLike(read: unknown, pattern: unknown): boolean {
  if (Array.isArray(pattern)) {
    const [entry] = pattern as unknown[];
    return Array.isArray(read) && (!isObject(entry) || read.every((one) => isObject(one) && hasAll(one, entry)));
  }
  // The value of a field may have one of several shapes.
  if (!isObject(pattern)) return typeof read === typeof pattern;
  return isObject(read) && !Array.isArray(read);
}

const isObject = (value: unknown): value is Values => typeof value === 'object' && value !== null;

const hasAll = (read: Values, pattern: Values): boolean => Object.keys(pattern).every((name) => name in read);
