/** The start of every command: the context, the client, and a warning before a token expires. */
import { Failure, exitCodes } from './exit.js';
import { askPassword } from './ask.js';
import { chosenContext, type Context } from './contexts.js';
import { say } from './output.js';
import { connect, dataOf, type Access, type Api } from './service.js';

/** The global options. */
export interface GlobalOptions {
  readonly context?: string;
  readonly caFile?: string;
  readonly insecure?: true;
}

export interface Session {
  readonly api: Api;
  readonly context: Context & { readonly name: string | null };
}

const warnBeforeMs = 14 * 86_400_000;

/** @throws Failure usage, or not signed in */
export async function openSession(options: GlobalOptions): Promise<Session> {
  const context = chosenContext(options.context);
  const left = context.expires_at === undefined ? Infinity : Date.parse(context.expires_at) - Date.now();
  if (left <= 0) throw new Failure(exitCodes.notSignedIn, `the token ended at ${context.expires_at}; run svcctl login`);
  if (left < warnBeforeMs) say(`svcctl: the token ends at ${context.expires_at}; run svcctl login for a new one`);
  const api = await connect({ ...accessOf(context, options), token: context.token });
  return { api, context };
}

/** Where the service of a context is, and how far it is trusted; options count before what the context says. */
export const accessOf = (context: Context, { caFile, insecure }: GlobalOptions): Access => ({
  server: context.server,
  insecure: insecure ?? context.insecure,
  caFile: caFile ?? context.ca_file,
});

/** Runs, as the person, what an API token may not do: asks for the password, and signs out afterwards. @throws Failure */
export async function asPerson<T>(session: Session, options: GlobalOptions, run: (api: Api) => Promise<T>): Promise<T> {
  const { context } = session;
  const { username } = await dataOf(session.api.GET('/api/auth/me'));
  const password = await askPassword(`Password of ${username} at ${context.server}`);
  return withSignIn(accessOf(context, options), username, password, ({ api }) => run(api));
}

interface SignedIn {
  readonly api: Api;
  readonly user: { readonly username: string; readonly role: 'admin' | 'operator' | 'viewer' };
}

/** Signs in, runs, and always signs out. @throws Failure */
export async function withSignIn<T>(
  access: Access,
  username: string,
  password: string,
  run: (signedIn: SignedIn) => Promise<T>,
): Promise<T> {
  const stranger = await connect(access);
  const { token, user } = await dataOf(stranger.POST('/api/auth/login', { body: { username, password } }));
  const api = await connect({ ...access, ...(token === undefined ? {} : { token }) });
  try {
    return await run({ api, user });
  } finally {
    await api.POST('/api/auth/logout').catch(() => undefined);
  }
}
