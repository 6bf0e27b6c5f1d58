/**
 * The logger that every folder uses; pino implements it. Fields first, then a sentence; never a secret in either. A
 * field is a word, a number or a short list of them, so that nobody logs a whole body, header, request or resource.
 */
import { errorText } from './errors.js';

export type LogValue =
  | string
  | number
  | boolean
  | null
  | undefined
  | readonly (string | number)[]
  /** Numbers by name. */
  | { readonly [name: string]: number };

export interface LogFields {
  readonly [name: string]: LogValue;
}

export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

/** Logs what was thrown, as a handler for `catch` and for the errors of loops. */
export const logsWarning =
  (logger: Pick<Logger, 'warn'>, message: string, fields: LogFields = {}) =>
  (error: unknown): void =>
    logger.warn({ ...fields, error: errorText(error) }, message);

/** The same at the level of an error, which somebody must look at. */
export const logsError =
  (logger: Pick<Logger, 'error'>, message: string, fields: LogFields = {}) =>
  (error: unknown): void =>
    logger.error({ ...fields, error: errorText(error) }, message);

export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
