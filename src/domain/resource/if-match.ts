/** Compares `If-Match` with the version of a resource. Implements `docs/contract/rest.md#consistency`. */
import type { Refusal } from './refusal.js';

/** Undefined when the header was not sent, `*` for any existing version, else the versions that match. */
export type IfMatch = undefined | '*' | readonly number[];

/** The refusal when the version does not match. Version 0 is a resource that was never saved. */
export function versionMismatch(version: number, ifMatch: IfMatch): Refusal | undefined {
  if (ifMatch === undefined) return undefined;
  if (ifMatch === '*') {
    return version > 0
      ? undefined
      : { code: 'precondition_failed', message: 'If-Match: * was sent and nothing has been saved here yet' };
  }
  if (ifMatch.includes(version)) return undefined;
  return {
    code: 'precondition_failed',
    message: `If-Match: expected the current version "${version}", got ${ifMatch.map((v) => `"${v}"`).join(', ') || 'none'}`,
  };
}
