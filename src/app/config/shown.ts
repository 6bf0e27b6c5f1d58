/** The variables as people read them: the text of `--help`, the effective ones, and those of the reference page. */
import type { z } from 'zod';
import { readVariables, schema, secrets, withSecretsOfFiles, type Environment } from './variables.js';

/** All variables in schema order, for `docs/reference/settings.md`. */
export function describedVariables() {
  return Object.entries(schema.shape).map(([name, field]) => ({
    name,
    default: defaultOf(field),
    isSecret: secrets.has(name),
    meaning: field.description ?? '',
  }));
}

/** The text of `--help`. */
export function usage(version: string): string {
  const rows = describedVariables().map(({ name, default: fallback, meaning }) =>
    [`  ${name}${fallback === undefined ? '' : ` (${fallback})`}`, `      ${meaning}`].join('\n'),
  );
  return [
    `The gateway control service ${version}. Every setting is an environment variable:`,
    '',
    ...rows,
    '',
    'Each secret may be in a file instead, named by NAME_FILE.',
    '',
    'Arguments:',
    '  --help          this text',
    '  --version       version, commit, compiler version and format',
    '  --print-config  the effective settings, secrets masked',
    '  --print-unit    a hardened systemd unit that runs this program',
  ].join('\n');
}

/** The text of `--print-config`: the effective variables, one `NAME=value` per line, secrets masked. @throws ConfigError */
export function printableConfig(env: Environment): string {
  readVariables(env);
  const given = withSecretsOfFiles(env, []);
  return Object.entries(schema.shape)
    .map(([name, field]) => {
      const value = given[name] ?? defaultOf(field);
      return `${name}=${value === undefined ? '' : secrets.has(name) ? '***' : value}`;
    })
    .join('\n');
}

function defaultOf(field: z.ZodType): string | undefined {
  const { defaultValue } = field.def as { readonly defaultValue?: unknown };
  return typeof defaultValue === 'string' ? defaultValue : undefined;
}
