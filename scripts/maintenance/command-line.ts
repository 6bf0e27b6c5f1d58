/**
 * What the maintenance commands share as programs: arguments, signals, one sentence per error, exit codes. 0: done; 1:
 * failed, or a problem was found; 2: wrong arguments; 3 and 4: findings of `log:verify`; 130: interrupted.
 */
import { access, constants } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { ConfigError } from '../../src/app/config/variables.js';
import { errorText, ServiceError } from '../../src/kernel/errors.js';
import type { Logger } from '../../src/kernel/logger.js';

/** The arguments are wrong. */
export class UsageError extends Error {}

/** The command cannot be carried out; the message is one sentence for the user. */
export class CommandError extends Error {}

export interface Arguments {
  readonly positional: readonly string[];
  readonly flags: ReadonlySet<string>;
  /** The values given for an option, in order; empty if there are none. */
  values(option: string): readonly string[];
}

/**
 * @param flags the accepted flags, each without a value
 * @param options the accepted options, each with a value; they may be repeated
 * @throws UsageError
 */
export function parseArguments(
  argv: readonly string[],
  flags: readonly string[],
  maxPositional: number,
  options: readonly string[] = [],
): Arguments {
  // Not strict, because parseArgs words its refusals differently.
  const { positionals, tokens } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(options.map((option) => [option.slice('--'.length), { type: 'string' as const }])),
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const found = tokens.filter((token) => token.kind === 'option');
  const values = found.filter(({ rawName }) => options.includes(rawName));
  const empty = values.find(({ value }) => value === undefined || value === '');
  if (empty !== undefined) throw new UsageError(`${empty.rawName} needs a value`);
  const given = found
    .filter(({ rawName }) => !options.includes(rawName))
    .map((token) => argv[token.index] ?? token.rawName);
  const unknown = given.find((argument) => !flags.includes(argument));
  if (unknown !== undefined) throw new UsageError(`${unknown} is not an option of this command`);
  if (positionals.includes('')) throw new UsageError('An argument is empty, perhaps for a variable that is not set');
  const [extra] = positionals.slice(maxPositional);
  if (extra !== undefined) throw new UsageError(`"${extra}" is one argument too many`);
  return {
    positional: positionals,
    flags: new Set(given),
    values: (option) =>
      values.flatMap(({ rawName, value }) => (rawName === option && value !== undefined ? [value] : [])),
  };
}

export const exitCodes = { done: 0, failed: 1, usage: 2, noLogChain: 3, damaged: 4, interrupted: 130 } as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

export const say = (line: string): void => void process.stdout.write(`${line}\n`);
const complain = (line: string): void => void process.stderr.write(`${line}\n`);

/** True if the file exists and may be read. */
export async function isReadable(path: string): Promise<boolean> {
  try {
    await access(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** Warnings and errors as lines on standard error. */
export const plainLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: (fields, message) => complain(`warning: ${message} ${JSON.stringify(fields)}`),
  error: (fields, message) => complain(`error: ${message} ${JSON.stringify(fields)}`),
};

/** One sentence that explains an error, with its cause. */
function sentence(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // An error of a built-in class is a bug in the program and needs its name; other messages are written for users.
  const fault = [Error, TypeError, RangeError, ReferenceError, SyntaxError].some((kind) => error.constructor === kind);
  const text = fault ? errorText(error) : error.message;
  return error instanceof ServiceError && error.cause !== undefined ? `${text} (${errorText(error.cause)})` : text;
}

/** Uses what is being opened, and closes it afterwards. */
export async function whileOpen<P extends { close(): unknown }, T>(
  opening: P | Promise<P>,
  use: (opened: P) => Promise<T>,
): Promise<T> {
  const opened = await opening;
  try {
    return await use(opened);
  } finally {
    await opened.close();
  }
}

/** Runs a command and sets the exit code. SIGINT and SIGTERM abort the signal; a second one ends the process at once. */
export async function runCommand(
  usage: string,
  command: (argv: readonly string[], signal: AbortSignal) => Promise<ExitCode>,
  argv: readonly string[] = process.argv.slice(2),
): Promise<void> {
  if (argv.includes('--help')) return say(usage);
  const stop = new AbortController();
  const onSignal = (): void => {
    if (stop.signal.aborted) process.exit(exitCodes.interrupted);
    stop.abort();
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  try {
    process.exitCode = await command(argv, stop.signal);
  } catch (error) {
    if (error instanceof UsageError) complain(`${error.message}.\n\n${usage}`);
    else if (error instanceof ConfigError) complain(`The configuration cannot be used:\n${error.message}`);
    else complain(sentence(error));
    // A wait for a store that a signal ends throws.
    const isInterrupted = stop.signal.aborted && error instanceof ServiceError;
    const code = error instanceof UsageError ? exitCodes.usage : exitCodes.failed;
    process.exitCode = isInterrupted ? exitCodes.interrupted : code;
  }
  process.off('SIGINT', onSignal);
  process.off('SIGTERM', onSignal);
}
