/** login, logout, whoami, context. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Command } from 'commander';
import { ask, askPassword, readStdin } from '../ask.js';
import { chosenContext, configFile, readContexts, serverUrl, writeContexts, type Context } from '../contexts.js';
import { Failure, usage } from '../exit.js';
import { wholeNumber } from '../options.js';
import { line, shown } from '../output.js';
import { connect, dataOf } from '../service.js';
import { accessOf, openSession, withSignIn, type GlobalOptions } from '../session.js';

const daysDefault = 30;
const nameChars = 100;
const prefixChars = 12;

interface LoginOptions extends GlobalOptions {
  readonly server?: string;
  readonly user?: string;
  readonly tokenStdin?: true;
  readonly role?: 'admin' | 'operator' | 'viewer';
  readonly expiresInDays?: number;
}

export function signInCommands(program: Command): void {
  program
    .command('login')
    .summary('sign in, and keep an API token for later commands')
    .option('--server <url>', 'the service, such as https://control.example.com')
    .option('--user <name>', 'the user name')
    .option('--token-stdin', 'keep the API token from stdin instead of creating one')
    .option('--role <role>', 'what the token may do, at most your own role')
    .option('--expires-in-days <n>', `days until the token ends (${daysDefault})`, wholeNumber('--expires-in-days'))
    .addHelpText('after', '\nExample:\n  svcctl login --server http://127.0.0.1:8081 --user admin')
    .action(async (_options, command: Command) => login(command.optsWithGlobals<LoginOptions>()));

  program
    .command('logout')
    .summary('delete the token of the context, and forget it')
    .addHelpText('after', '\nExample:\n  svcctl logout')
    .action(async (_options, command: Command) => logout(command.optsWithGlobals<GlobalOptions>()));

  program
    .command('whoami')
    .summary('show who is signed in, where, and until when')
    .addHelpText('after', '\nExample:\n  svcctl whoami')
    .action(async (_options, command: Command) => {
      const { api, context } = await openSession(command.optsWithGlobals<GlobalOptions>());
      const { username, role } = await dataOf(api.GET('/api/auth/me'));
      await line(`${shown(username)} (${role}) at ${context.server}`);
      await line(`context ${context.name ?? 'SVC_SERVER, SVC_TOKEN'}`);
      if (context.name !== null)
        await line(`token ${context.token_name ?? 'given'}, ends ${context.expires_at ?? 'never, as far as is known'}`);
    });

  const context = program
    .command('context')
    .summary('list the contexts; * is the current one')
    .addHelpText('after', '\nExample:\n  svcctl context')
    .action(async () => {
      const { current, contexts } = readContexts();
      for (const [name, { server, user }] of Object.entries(contexts)) {
        await line(`${name === current ? '*' : ' '} ${shown(name)}  ${shown(user)} at ${server}`);
      }
    });
  context
    .command('use <name>')
    .summary('make a context the current one')
    .addHelpText('after', '\nExample:\n  svcctl context use default')
    .action(async (name: string) => {
      const { contexts } = readContexts();
      if (contexts[name] === undefined)
        throw usage(`there is no context ${name}; expected one of ${Object.keys(contexts).join(', ') || 'none'}`);
      writeContexts({ current: name, contexts });
    });
}

async function login(options: LoginOptions): Promise<void> {
  const known = readContexts();
  const name = options.context ?? known.current;
  const before = known.contexts[name];
  const server = serverUrl(options.server ?? before?.server ?? (await ask('Server', '--server URL')));
  // Checked before the password is asked for, and before a token is made that could not be kept.
  await connect({ server, caFile: options.caFile, insecure: options.insecure });
  writeContexts(known);
  const made =
    options.tokenStdin === true ? await givenToken(server, options) : await newToken(server, options, before);
  const kept: Context = {
    ...made,
    server,
    ...(options.caFile === undefined ? {} : { ca_file: options.caFile }),
    ...(options.insecure === undefined ? {} : { insecure: true }),
  };
  writeContexts({ current: name, contexts: { ...known.contexts, [name]: kept } });
  await line(`signed in as ${shown(kept.user)} at ${server}; the token is in ${configFile()}`);
}

type Signed = Pick<Context, 'user' | 'token' | 'token_id' | 'token_name' | 'expires_at'>;

async function newToken(server: string, options: LoginOptions, before: Context | undefined): Promise<Signed> {
  const { caFile, insecure } = options;
  const username = options.user ?? (await ask('User name', '--user NAME', before?.user));
  const password = await askPassword(`Password of ${username} at ${server}`);
  return withSignIn({ server, caFile, insecure }, username, password, async ({ api, user }) => {
    const called = `svcctl@${hostname()}-${randomBytes(2).toString('hex')}`.slice(-nameChars);
    const body = {
      name: called,
      role: options.role ?? user.role,
      expires_in_days: options.expiresInDays ?? daysDefault,
    };
    const { id, token, expires_at } = await dataOf(api.POST('/api/auth/tokens', { body }));
    if (token === null) throw new Error('a new token has a text');
    return { user: user.username, token, token_id: id, token_name: called, ...ends(expires_at) };
  });
}

const ends = (at: string | null): Pick<Context, 'expires_at'> => (at === null ? {} : { expires_at: at });

async function givenToken(server: string, { caFile, insecure }: LoginOptions): Promise<Signed> {
  const token = (await readStdin()).trim();
  if (!/^[\x21-\x7e]+$/.test(token)) throw usage('--token-stdin: expected a token on stdin');
  const api = await connect({ server, token, caFile, insecure });
  const { username } = await dataOf(api.GET('/api/auth/me'));
  const { items } = await dataOf(api.GET('/api/auth/tokens', { params: { query: { page_size: 200 } as never } }));
  const own = items.find(({ prefix }) => prefix === token.slice(0, prefixChars));
  return { user: username, token, ...(own === undefined ? {} : { token_name: own.name, ...ends(own.expires_at) }) };
}

async function logout(options: GlobalOptions): Promise<void> {
  const { name, ...context } = chosenContext(options.context);
  if (name === null) throw usage('SVC_SERVER and SVC_TOKEN are no context; delete the token with svcctl delete tokens');
  const { current, contexts } = readContexts();
  if (context.token_id !== undefined) await deleteToken(context.token_id, context, options);
  const { [name]: _gone, ...left } = contexts;
  writeContexts({ current: name === current ? (Object.keys(left)[0] ?? 'default') : current, contexts: left });
  await line(`signed out of ${shown(name)}`);
}

/** A token that has expired or is already deleted counts as deleted. @throws Failure */
async function deleteToken(id: string, context: Context, options: GlobalOptions): Promise<void> {
  const api = await connect({ ...accessOf(context, options), token: context.token });
  await dataOf(api.DELETE('/api/auth/tokens/{id}', { params: { path: { id } } })).catch((error: unknown) => {
    if (!(error instanceof Failure) || (error.status !== 401 && error.status !== 404)) throw error;
  });
}
