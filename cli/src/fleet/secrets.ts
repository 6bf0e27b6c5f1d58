/**
 * `{file: …}` and `{env: …}` in place of a key or a PEM: read here and sent as text, so that the fleet file's repository holds
 * no secrets. Only files beneath the document's folder and variables named with `--env` are read, so that a foreign document
 * cannot fetch others. Implements `docs/contract/automation.md#the-fleet-as-a-file`.
 */
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, isAbsolute, relative, resolve } from 'node:path';
import { cwd, env } from 'node:process';
import { utf8 } from '../ask.js';
import { usage } from '../exit.js';
import type { Fill } from './documents.js';

const publicFields = new Set(['certificate_pem']);
const secretFields = new Set(['private_key', 'private_key_pem']);

/**
 * @param names variables that may be read
 * @param withoutSecrets omits private keys, for a plan without access to them
 */
export function fillSecrets(names: readonly string[], withoutSecrets: boolean): Fill {
  const allowed = new Set(names);
  return (value, file) => {
    const credentials = value['credentials'];
    if (typeof credentials !== 'object' || credentials === null) return value;
    const filled = Object.entries(credentials).map(
      ([name, fields]) => [name, ofCredential(fields, name, file)] as const,
    );
    return { ...value, credentials: Object.fromEntries(filled) };
  };

  function ofCredential(fields: unknown, name: string, file: string): unknown {
    if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) return fields;
    const shown: Record<string, unknown> = {};
    for (const [field, given] of Object.entries(fields)) {
      if (secretFields.has(field) && withoutSecrets) continue;
      const from = secretFields.has(field) || publicFields.has(field) ? sourceOf(given) : undefined;
      const path = `credentials.${name}.${field}`;
      shown[field] =
        from === undefined ? given : 'env' in from ? variable(from.env, path) : fileText(from.file, path, file);
    }
    return shown;
  }

  function variable(name: string, path: string): string {
    if (!allowed.has(name)) throw usage(`${path}: reading ${name} needs --env ${name}`);
    const text = env[name];
    if (text === undefined || text === '') throw usage(`${path}: the variable ${name} is not set`);
    return text;
  }
}

function sourceOf(given: unknown): { readonly env: string } | { readonly file: string } | undefined {
  if (typeof given !== 'object' || given === null) return undefined;
  const [[kind, from] = [], another] = Object.entries(given);
  if (another !== undefined || typeof from !== 'string') return undefined;
  if (kind === 'env') return { env: from };
  return kind === 'file' ? { file: from } : undefined;
}

function fileText(named: string, path: string, document: string): string {
  const folder = realpathSync(document === '-' ? cwd() : dirname(resolve(document)));
  let real: string;
  try {
    real = realpathSync(resolve(folder, named));
  } catch (error) {
    throw usage(`${path}: ${(error as Error).message}`);
  }
  const inside = relative(folder, real);
  if (inside === '' || inside.startsWith('..') || isAbsolute(inside)) {
    throw usage(`${path}: ${named} is not beneath ${folder}, the folder of the document`);
  }
  // Reading a pipe would block.
  if (!statSync(real).isFile()) throw usage(`${path}: ${named}: expected a file`);
  return utf8(readFileSync(real), `${path}: ${named}`);
}
