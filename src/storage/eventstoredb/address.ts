/**
 * Parses the URL of the store into the settings of the client package, whose own parser prints passwords and cuts them
 * at a colon. Accepts the schemes of all clients of this store, also called KurrentDB. No error quotes any part of the
 * URL. Implements `docs/contract/configuration.md#configuration`.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ChannelCredentialOptions, EndPoint } from '@eventstore/db-client';

export interface User {
  readonly username: string;
  readonly password: string;
}

export interface StoreAddress {
  /** One for a single node; several, or one with `dnsDiscovery`, for a cluster. */
  readonly hosts: readonly [EndPoint, ...EndPoint[]];
  /** The only host is a name that stands for all nodes. */
  readonly dnsDiscovery: boolean;
  readonly tls: boolean;
  readonly credentials: ChannelCredentialOptions;
  readonly user: User | undefined;
  readonly options: {
    readonly connectionName?: string;
    readonly defaultDeadline?: number;
    readonly maxDiscoverAttempts?: number;
    readonly discoveryInterval?: number;
    readonly gossipTimeout?: number;
  };
  /** Names of options that are not used. */
  readonly unused: readonly string[];
}

const shape = 'the event store URL must look like esdb://user:password@host:2113?option=value or kurrentdb://…';
const scheme = /^(?:esdb|kurrentdb|kdb|kurrent)(\+discover)?:\/\//i;

/** The adapter sets these itself; see `connection.ts`. */
const forced: ReadonlySet<string> = new Set([
  'throwonappendfailure',
  'nodepreference',
  'keepaliveinterval',
  'keepalivetimeout',
]);

const decoded = (text: string, what: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new TypeError(`${what} in the event store URL must be percent-encoded`);
  }
};

function readUser(text: string): User {
  const colon = text.indexOf(':');
  if (colon <= 0) throw new TypeError('before the @, the event store URL must have user:password');
  return {
    username: decoded(text.slice(0, colon), 'the user name'),
    password: decoded(text.slice(colon + 1), 'the password'),
  };
}

/** An IPv6 address is in brackets and keeps them. */
function readHost(text: string): EndPoint {
  const [, address, digits = '2113'] = /^(\[[\da-f:.]+\]|[^:[\]]+)(?::(\d{1,5}))?$/i.exec(text) ?? [];
  const port = Number(digits);
  if (address === undefined || port < 1 || port > 65_535) {
    throw new TypeError('each host of the event store URL must look like name, name:port or [ipv6]:port');
  }
  return { address, port };
}

/** Options by name without case, dashes and underscores, as all clients compare them. */
function readOptions(query: string): ReadonlyMap<string, { readonly name: string; readonly value: string }> {
  const options = new Map<string, { name: string; value: string }>();
  for (const pair of query.split('&').filter((text) => text !== '')) {
    const [name = '', ...rest] = pair.split('=');
    const value = decoded(rest.join('='), 'the options');
    if (name === '' || value === '')
      throw new TypeError('each option of the event store URL must look like name=value');
    options.set(name.toLowerCase().replaceAll(/[_-]/g, ''), { name, value });
  }
  return options;
}

function readFileOf(option: string, path: string): Buffer {
  try {
    return readFileSync(resolve(path));
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw new TypeError(`the file that ${option} of the event store URL names cannot be read (${code})`);
  }
}

/** @throws TypeError that says what was expected */
export function readAddress(url: string): StoreAddress {
  const [begin, discover] = scheme.exec(url) ?? [];
  if (begin === undefined) throw new TypeError(shape);
  const [before = '', ...queries] = url.slice(begin.length).trim().split('?');
  if (queries.length > 1) throw new TypeError(shape);
  const at = before.lastIndexOf('@');
  const hostTexts = before
    .slice(at + 1)
    .replace(/\/+$/, '')
    .split(',');
  const [first, ...more] = hostTexts.map(readHost);
  if (first === undefined) throw new TypeError(shape);
  const options = readOptions(queries[0] ?? '');
  const used = new Set<string>();
  const take = (name: string): string | undefined => {
    used.add(name.toLowerCase());
    return options.get(name.toLowerCase())?.value;
  };
  const wrong = (name: string, expected: string): never => {
    throw new TypeError(`${name} in the event store URL must be ${expected}`);
  };
  const number = <N extends string>(name: N): { [field in N]?: number } => {
    const text = take(name);
    if (text === undefined) return {};
    if (!/^\d{1,9}$/.test(text) || Number(text) < 1) wrong(name, 'a whole number above 0');
    return { [name]: Number(text) } as { [field in N]?: number };
  };
  const flag = (name: string): boolean => {
    const text = take(name) ?? 'true';
    if (text !== 'true' && text !== 'false') wrong(name, 'true or false');
    return text === 'true';
  };
  const file = <N extends string>(name: N): Buffer | undefined => {
    const path = take(name);
    return path === undefined ? undefined : readFileOf(name, path);
  };

  const tls = flag('tls');
  if (!flag('tlsVerifyCert') && tls) {
    wrong('tlsVerifyCert', 'left out: name the authority of the certificates with tlsCAFile instead');
  }
  const [rootCertificate, userCertFile, userKeyFile] = [file('tlsCAFile'), file('userCertFile'), file('userKeyFile')];
  if ((userCertFile === undefined) !== (userKeyFile === undefined)) wrong('userCertFile', 'set with userKeyFile');
  const user = at < 0 ? undefined : readUser(before.slice(0, at));
  // Appends need credentials of their own (`append.ts`).
  if (tls && user === undefined) throw new TypeError('needs user:password@ when TLS is on');
  const connectionName = take('connectionName');
  return {
    hosts: [first, ...more],
    dnsDiscovery: discover !== undefined,
    tls,
    credentials: tls
      ? {
          ...(rootCertificate === undefined ? {} : { rootCertificate }),
          ...(userCertFile === undefined || userKeyFile === undefined ? {} : { userCertFile, userKeyFile }),
        }
      : { insecure: true },
    user,
    options: {
      ...(connectionName === undefined ? {} : { connectionName }),
      ...number('defaultDeadline'),
      ...number('maxDiscoverAttempts'),
      ...number('discoveryInterval'),
      ...number('gossipTimeout'),
    },
    unused: [...options].filter(([key]) => !used.has(key) && !forced.has(key)).map(([, { name }]) => name),
  };
}
