/**
 * Why a command is refused: a code, and a sentence that names the field or the other resource.
 * Implements `docs/contract/rest.md#errors`.
 */
import type { Result } from '../../kernel/result.js';
import { err } from '../../kernel/result.js';

export type RefusalCode = 'invalid_request' | 'not_found' | 'precondition_failed' | 'conflict' | 'payload_too_large';

export interface Refusal {
  readonly code: RefusalCode;
  readonly message: string;
}

export type Decision<E> = Result<readonly E[], Refusal>;

export function refuse(code: RefusalCode, message: string): { readonly ok: false; readonly error: Refusal } {
  return err({ code, message });
}
