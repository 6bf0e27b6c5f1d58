/**
 * Where `svcctl` is signed in: named contexts in a file that only its owner can read. `SVC_SERVER` with `SVC_TOKEN`
 * override them. Implements `docs/contract/automation.md#the-command-line-svcctl`.
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { env } from 'node:process';
import { Failure, exitCodes, usage } from './exit.js';

export interface Context {
  readonly server: string;
  readonly user: string;
  readonly token: string;
  /** The id of a token that `login` created; `logout` deletes it. */
  readonly token_id?: string;
  readonly token_name?: string;
  /** RFC 3339; absent for a token that never expires, or whose expiry is unknown. */
  readonly expires_at?: string;
  readonly ca_file?: string;
  /** Whether the token may go over plain http. */
  readonly insecure?: true;
}

export interface Contexts {
  readonly current: string;
  readonly contexts: Readonly<Record<string, Context>>;
}

export const configFile = (): string =>
  join(env['XDG_CONFIG_HOME'] || join(homedir(), '.config'), 'svcctl', 'config.json');

/** @throws Failure usage when the file is damaged */
export function readContexts(): Contexts {
  let text: string;
  try {
    text = readFileSync(configFile(), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { current: 'default', contexts: {} };
    throw usage(`${configFile()}: ${(error as Error).message}`);
  }
  try {
    const read = JSON.parse(text) as Contexts;
    if (read.contexts instanceof Object) return read;
  } catch {
    // No JSON, or null.
  }
  throw usage(`${configFile()}: expected JSON with contexts; mend it, or delete it and sign in again`);
}

/** Writes atomically, readable only by its owner. @throws Failure usage */
export function writeContexts(contexts: Contexts): void {
  const path = configFile();
  const fresh = `${path}.${randomUUID()}`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(fresh, `${JSON.stringify(contexts, undefined, 2)}\n`, { mode: 0o600 });
    renameSync(fresh, path);
  } catch (error) {
    throw usage(`${path}: ${(error as Error).message}`);
  }
}

/** The context that a command uses. @throws Failure usage, or not signed in */
export function chosenContext(named: string | undefined): Context & { readonly name: string | null } {
  const [server, token] = [env['SVC_SERVER'] ?? '', env['SVC_TOKEN'] ?? ''];
  if ((server === '') !== (token === '')) {
    throw usage(
      `expected SVC_SERVER and SVC_TOKEN, or neither; ${server === '' ? 'SVC_SERVER' : 'SVC_TOKEN'} is not set`,
    );
  }
  if (server !== '') return { name: null, server: serverUrl(server), user: '', token };
  const { current, contexts } = readContexts();
  const name = named ?? current;
  const context = contexts[name];
  if (context !== undefined) return { ...context, name };
  if (named !== undefined)
    throw usage(`there is no context ${named}; expected one of ${Object.keys(contexts).join(', ') || 'none'}`);
  throw new Failure(exitCodes.notSignedIn, 'not signed in; run svcctl login');
}

/** @throws Failure usage */
export function serverUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw usage(`server: expected a URL such as https://control.example.com, got ${text}`);
  return url.origin;
}

const loopback = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** @throws Failure usage for a token that would go over plain http to another machine */
export function requireSafe(server: string, insecure: boolean | undefined): void {
  const { protocol, hostname } = new URL(server);
  if (protocol === 'https:' || loopback.test(hostname) || insecure === true) return;
  throw usage(`${server} is plain http, and everybody on the way could read the token; expected https, or --insecure`);
}
