/** Why a backup was not made: one clause for people, which names no path, and the whole error for the log. */
import { errorText } from '../kernel/errors.js';
import { systemErrorCode } from '../kernel/files.js';

export interface Failure {
  /** Without a full stop. */
  readonly reason: string;
  readonly error: string;
}

export function failureOf(error: unknown): Failure {
  // The reason that a thread gave for its own failure.
  if (error instanceof Error && typeof error.cause === 'string') return { reason: error.message, error: error.cause };
  const code = systemErrorCode(error);
  const isOfSystem = code !== undefined && !code.startsWith('ERR_');
  return { reason: isOfSystem ? ofFolder(code) : textOf(error), error: errorText(error) };
}

const ofFolder = (code: string): string =>
  code === 'ENOSPC' || code === 'EDQUOT'
    ? 'no space is left in the folder of backups'
    : `the folder of backups cannot be used (${code})`;

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
