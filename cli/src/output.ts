/**
 * The output of commands. Names come from other people: control characters in them are escaped, so that none moves the cursor
 * or hides a line. Colours only on a terminal, and none with `NO_COLOR`.
 */
import { fstatSync, statSync, writeSync } from 'node:fs';
import process, { env, stderr, stdout } from 'node:process';
import { Document, visit } from 'yaml';
import { exitCodes, type ExitCode, type Failure } from './exit.js';
import { layoutOf, type Column, type Layout, type Row } from './table.js';

export type { Column, Row };

export const formats = ['table', 'wide', 'json', 'yaml', 'name'] as const;
export type Format = (typeof formats)[number];

const colourful = (): boolean => stdout.isTTY && (env['NO_COLOR'] ?? '') === '';

const codes = { red: 31, green: 32, yellow: 33, bold: 1, dim: 2 } as const;
export type Colour = keyof typeof codes;

export const paint = (colour: Colour, text: string): string =>
  colourful() ? `\u001b[${codes[colour]}m${text}\u001b[0m` : text;

// oxlint-disable-next-line no-control-regex -- the characters that are escaped
const control = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Untrusted text as one line. @param nothing shown for an empty value */
export function shown(value: unknown, nothing = '–'): string {
  if (value === null || value === undefined || value === '') return nothing;
  const text = typeof value === 'string' ? value : typeof value === 'object' ? JSON.stringify(value) : String(value);
  return escaped(text);
}

const escaped = (text: string): string =>
  text.replace(control, (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`);

/** Writes to stdout, and waits while a reader is slow. */
export async function write(text: string): Promise<void> {
  if (stdout.write(text)) return;
  await new Promise<void>((resolve) => stdout.once('drain', resolve));
}

export const line = (text: string): Promise<void> => write(`${text}\n`);

/** Secrets that are shown once and have not been read yet. */
const untold = new Set<string>();

/** Remembers lines that are shown once: they are printed however the command ends. */
export function holdSecrets(lines: readonly string[]): void {
  for (const text of lines) untold.add(text);
}

/** Prints lines that are shown once: to stderr when stdout has no reader. */
export async function tellSecrets(lines: readonly string[]): Promise<void> {
  holdSecrets(lines);
  // A stdout that was closed at the start is /dev/null as well.
  if (leadsNowhere()) {
    tellUntold();
    return;
  }
  for (const text of lines) {
    await new Promise<void>((resolve) => {
      stdout.write(text.endsWith('\n') ? text : `${text}\n`, (error) => {
        if (error === null || error === undefined) untold.delete(text);
        resolve();
      });
    });
  }
  tellUntold();
}

/** Whether stdout is /dev/null. */
function leadsNowhere(): boolean {
  try {
    const [out, nowhere] = [fstatSync(1), statSync('/dev/null')];
    return out.isCharacterDevice() && out.rdev === nowhere.rdev;
  } catch {
    return !stdout.writable;
  }
}

/** Writes unread secrets to stderr, synchronously. @returns whether there were any */
export function tellUntold(): boolean {
  const left = [...untold];
  untold.clear();
  for (const text of left) writeSync(2, text.endsWith('\n') ? text : `${text}\n`);
  if (left.length > 0) process.exitCode = exitCodes.refused;
  return left.length > 0;
}

/** The exit code of a command whose output is no longer read. */
let unreadCode: ExitCode = exitCodes.done;

/** Says whether the command would leave something undone if it ended now because its output is no longer read. */
export function leavesUndone(something: boolean): void {
  unreadCode = something ? exitCodes.refused : exitCodes.done;
}

/** Ends the process, because its output is no longer read. */
export const endUnread = (): never => process.exit(process.exitCode ?? unreadCode);

/** A message on stderr. */
export function say(text: string): void {
  stderr.write(`${text}\n`);
}

/** Warnings of the service, on stderr. @param warnings none from an earlier release */
export function sayWarnings(warnings: readonly string[] = []): void {
  for (const warning of warnings) say(`svcctl: warning: ${shown(warning)}`);
}

/** Says which rollout a change has started, on stderr. @param id none when it has started none */
export function sayRollout(id: unknown): void {
  if (typeof id === 'string') say(`svcctl: rollout ${id}`);
}

/** YAML that reads back the same: texts with control characters are quoted and escaped. */
export function yamlOf(value: unknown): string {
  const document = new Document(value, { version: '1.2' });
  visit(document, {
    Scalar(_, scalar) {
      if (typeof scalar.value === 'string' && scalar.value.replaceAll('\n', '').search(control) >= 0)
        scalar.type = 'QUOTE_DOUBLE';
    },
  });
  const lines = document.toString({ lineWidth: 0, doubleQuotedMinMultiLineLength: Infinity }).split('\n');
  return lines.map(escaped).join('\n');
}

const jsonOf = (value: unknown): string => JSON.stringify(value, undefined, 2);

/** One value, as a whole. */
export async function printValue(value: unknown, format: 'json' | 'yaml'): Promise<void> {
  await write(format === 'json' ? `${jsonOf(value)}\n` : yamlOf(value));
}

/**
 * Prints a list page by page. The first page determines the widths of a table.
 * @param nameOf for `-o name`
 */
export async function printList(
  pages: AsyncIterable<readonly Row[]> | Iterable<readonly Row[]>,
  {
    format,
    columns,
    nameOf,
  }: { readonly format: Format; readonly columns: readonly Column[]; nameOf(row: Row): string },
): Promise<void> {
  switch (format) {
    case 'json': {
      let first = true;
      await write('[');
      for await (const page of pages) {
        for (const row of page) {
          await write(`${first ? '\n' : ',\n'}${jsonOf(row).replace(/^/gm, '  ')}`);
          first = false;
        }
      }
      return write(first ? ']\n' : '\n]\n');
    }
    case 'yaml': {
      let empty = true;
      for await (const page of pages) {
        empty &&= page.length === 0;
        if (page.length > 0) await write(yamlOf(page));
      }
      return empty ? write('[]\n') : undefined;
    }
    case 'name':
      for await (const page of pages) for (const row of page) await line(shown(nameOf(row)));
      return undefined;
    case 'table':
    case 'wide': {
      const chosen = columns.filter(({ wide }) => format === 'wide' || wide === undefined);
      let layout: Layout | undefined;
      for await (const page of pages) {
        if (layout === undefined) {
          layout = layoutOf(chosen, page, format === 'wide' ? undefined : terminalWidth(), shown);
          await line(paint('bold', layout.head));
        }
        for (const row of page) await line(layout.lineOf(row));
      }
      return undefined;
    }
    default:
      return unreachable(format);
  }
}

/** Undefined if stdout is not a terminal, or its width is unknown. */
export const terminalWidth = (): number | undefined => stdout.columns || undefined;

/** Prints a failure as one line, with the id of the request in the service's log. */
export function sayFailure({ message, requestId }: Failure): void {
  say(`svcctl: ${shown(message)}${requestId === null ? '' : ` (request ${requestId})`}`);
}

/** The end of a switch over all cases. */
export function unreachable(value: never): never {
  throw new Error(`unexpected ${String(value)}`);
}
