/**
 * Refusals of commands: a code, and a sentence that names the field or the other resource. The check of `If-Match`, which
 * comes first. Implements `docs/contract/rest.md#errors` and `docs/contract/rest.md#consistency`.
 */
import { err, type Result } from '../../kernel/result.js';

export type RefusalCode = 'invalid_request' | 'not_found' | 'precondition_failed' | 'conflict' | 'payload_too_large';

export interface Refusal {
  readonly code: RefusalCode;
  readonly message: string;
}

export type Decision<E> = Result<readonly E[], Refusal>;

export function refuse(code: RefusalCode, message: string): { readonly ok: false; readonly error: Refusal } {
  return err({ code, message });
}

/** Undefined when the header was not sent, `*` for any existing version, else the versions that match. */
export type IfMatch = undefined | '*' | readonly number[];

/** The refusal when the version does not match. Version 0 stands for a resource that was never saved. */
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
