/**
 * The sentence for an instance whose compiler version differs from the log's, which serves no configuration and gets no traffic:
 * it tells an operator which instance to change. Implements `docs/contract/domain.md#generation`.
 */
import { unreachable } from '../../kernel/errors.js';
import type { ServingState } from '../port.js';

export type CompilerMismatch = Extract<ServingState, { readonly kind: 'older_compiler' | 'newer_compiler' }>;

export function isMismatch(state: ServingState): state is CompilerMismatch {
  return state.kind === 'older_compiler' || state.kind === 'newer_compiler';
}

/** One sentence, without a full stop, for readiness and the log. */
export function mismatchText(state: CompilerMismatch): string {
  const { kind, logVersion, ownVersion } = state;
  const numbers = `the log is at compiler version ${logVersion}, this release has ${ownVersion}`;
  switch (kind) {
    case 'older_compiler':
      return `${numbers}: upgrade this instance (or go back for all: compiler:lower ${ownVersion})`;
    case 'newer_compiler':
      return `${numbers}: the number was lowered, so replace this instance by the older release (started again as it is, it raises the number)`;
    default:
      return unreachable(kind);
  }
}
