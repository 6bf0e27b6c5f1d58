/** Options that several commands share, and how their values are read. */
import { Option, type Command } from 'commander';
import { usage } from './exit.js';
import { formats } from './output.js';
import type { GlobalOptions } from './session.js';

/** For options that may repeat. */
export const collect = (value: string, before: readonly string[]): readonly string[] => [...before, value];

export const formatOption = (): Option =>
  new Option('-o, --output <format>', 'how to print it').choices([...formats]).default('table');

/** The format of what is no list. */
export const reportOption = (): Option =>
  new Option('-o, --output <format>', 'how to print it').choices(['text', 'json', 'yaml']).default('text');

export interface ReportOptions extends GlobalOptions {
  readonly output: 'text' | 'json' | 'yaml';
}

/** @param example a filter of that list */
export const filterOption = (example: string): Option =>
  new Option('--filter <field=value>', `a filter of the API, such as ${example}; may repeat`)
    .argParser(collect)
    .default([], 'none');

/** The API's filters, as a query; one that repeats is a list. @throws Failure usage */
export function filtersOf(given: readonly string[]): Record<string, string | readonly string[]> {
  const query = new Map<string, readonly string[]>();
  for (const one of given) {
    const [field, value] = pair(one, '--filter');
    // A typo in the field would silently give an empty list.
    if (field === 'label' && /^[^:]*=/.test(value)) {
      throw usage(`--filter ${one}: expected label=key:value, or label=key`);
    }
    query.set(field, [...(query.get(field) ?? []), value]);
  }
  if (query.has('page')) throw usage('--filter page: expected a field; all pages are read');
  return Object.fromEntries(
    [...query].map(([field, values]) => [field, values.length === 1 ? (values[0] ?? '') : values]),
  );
}

/** `field=value` @throws Failure usage */
export function pair(given: string, option: string): [field: string, value: string] {
  const equals = given.indexOf('=');
  if (equals < 1) throw usage(`${option} ${given}: expected field=value`);
  return [given.slice(0, equals), given.slice(equals + 1)];
}

/** The policy by which a change is rolled out. */
export interface RolloutOptions {
  readonly rollout?: string;
  readonly confirm?: 'node' | 'manual';
  readonly confirmSecs?: number;
}

/** The options of a command that may be rolled out, and be taken back unless it is confirmed. */
export const withRolloutOptions = (command: Command): Command =>
  command
    .option('--rollout <policy>', 'roll it out by this policy, or none; default: as the settings say')
    .addOption(
      new Option(
        '--confirm <by>',
        'take it back unless its nodes, or somebody (manual), confirm it in time; with --confirm-secs',
      ).choices(['node', 'manual']),
    )
    .option('--confirm-secs <n>', 'how many seconds a confirmation may take', wholeNumber('--confirm-secs'));

export type RolloutQuery = ReturnType<typeof rolloutQuery>;

export function rolloutQuery({ rollout, confirm, confirmSecs }: RolloutOptions) {
  return {
    ...(rollout === undefined ? {} : { rollout }),
    ...(confirm === undefined ? {} : { confirm }),
    ...(confirmSecs === undefined ? {} : { confirm_secs: confirmSecs }),
  };
}

/** Reads an option, or throws a usage failure that names it. */
export const wholeNumber =
  (option: string) =>
  (given: string): number => {
    if (!/^[0-9]{1,6}$/.test(given)) throw usage(`${option} ${given}: expected a whole number`);
    return Number(given);
  };
