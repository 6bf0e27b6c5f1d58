/**
 * Sign-in and the caller's own account. Budgets, passwords and tokens are behind `commands/handlers-port.ts`.
 * Implements `docs/contract/rest.md#authentication-and-roles`.
 */
import { z } from 'zod';
import { plainIp } from '../../../kernel/addresses.js';
import { limits } from '../../../kernel/limits.js';
import { createAddressBudget } from '../checks/address-budget.js';
import { callerOf, commandContext, setCommandHeaders } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, ok } from '../answers/envelope.js';
import { body, boolean, text } from '../schemas/fields.js';
import { etag } from '../schemas/headers.js';
import { component, documented } from '../schemas/documented.js';
import { tuning } from '../tuning.js';
import {
  byCookie,
  clearSessionCookie,
  sessionCookie,
  setSessionCookie,
  type OriginCheck,
} from '../checks/session-token.js';
import { cookieView, knownPassword, newPassword, profileFields, tokenFields, tokenView, userSchema } from './users.js';

const credentials = body({
  username: documented(text(0, limits.rest.stringChars), 'Upper and lower case are the same', 'ada'),
  password: knownPassword,
  cookie: boolean()
    .optional()
    .meta({
      description: `For browsers: sets the token as the cookie \`${sessionCookie}\`, which scripts cannot read. Needs an \`Origin\` of the service; default \`false\``,
    }),
}).meta({ id: 'SignIn', description: 'Who signs in' });

const profile = body(profileFields).meta({
  id: 'OwnAccountChanges',
  description: "Changes of the caller's account. Omitted fields stay",
});

const passwords = body({
  current_password: knownPassword,
  new_password: newPassword,
  revoke_tokens: boolean().optional().meta({ description: "Also ends the user's API tokens; default `false`" }),
}).meta({
  id: 'PasswordChange',
  description: 'The current and the new password',
});

const signedIn = component('SignedIn', 'The token and its user', {
  ...tokenFields,
  user: documented(userSchema, 'Who has signed in'),
});

const newToken = component('NewToken', 'The token that replaces all others', tokenFields);

const signedOut = z.object({}).meta({ description: 'Signed out', examples: [{}] });

export function authRoutes(app: RestApp, deps: RestDeps, requireOwnOrigin: OriginCheck): void {
  signInRoutes(app, deps, requireOwnOrigin);
  ownAccountRoutes(app, deps.commands);
}

function signInRoutes(app: RestApp, deps: RestDeps, requireOwnOrigin: OriginCheck): void {
  const { accounts } = deps.commands;

  app.post('/api/auth/login', {
    config: {
      access: 'login',
      takes: 'json',
      refuses: ['rate_limited'],
    },
    onRequest: createAddressBudget(tuning.signIns, 'sign-ins', deps.clock),
    schema: {
      operationId: 'signIn',
      summary: 'Sign in',
      description:
        'Answers with an access token for `Authorization: Bearer <token>`, or sets it as a cookie. A wrong name and a wrong password get the same 401. Failed sign-ins have a budget. An Idempotency-Key is ignored.',
      security: [],
      headers: z.looseObject({}),
      body: credentials,
      response: answers(signedIn),
    },
    handler: async (request, reply) => {
      const { username, password, cookie = false } = request.body;
      if (cookie) requireOwnOrigin(request);
      const login = await accounts.login(username, password, plainIp(request.ip), request.id);
      if (!cookie) return ok({ ...tokenView(login), user: login.user });
      setSessionCookie(request, reply, login);
      return ok({ ...cookieView(login), user: login.user });
    },
  });

  app.post('/api/auth/logout', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'signOut',
      summary: 'Sign out',
      description:
        'Ends the token of this request on every instance and clears its cookie; other tokens of the user stay. An Idempotency-Key is ignored.',
      headers: z.looseObject({}),
      response: answers(signedOut),
    },
    handler: async (request, reply) => {
      // With a key that was used before, the token of this request would stay alive.
      const outcome = await accounts.signOut({ ...commandContext(request), idempotency: undefined }, callerOf(request));
      setCommandHeaders(reply, outcome);
      if (byCookie(request)) clearSessionCookie(request, reply);
      return ok({});
    },
  });
}

function ownAccountRoutes(app: RestApp, { accounts }: RestDeps['commands']): void {
  app.get('/api/auth/me', {
    config: { access: 'anyone', takes: 'none', sendsEtag: true },
    schema: {
      operationId: 'getOwnAccount',
      summary: "The caller's account",
      description: 'The user that the token belongs to.',
      response: answers(userSchema),
    },
    handler: async (request, reply) => {
      const me = await accounts.me(callerOf(request).userId);
      void reply.header('etag', etag(me.version));
      return ok(me);
    },
  });

  app.put('/api/auth/me', {
    config: { access: 'anyone', takes: 'json' },
    schema: {
      operationId: 'updateOwnAccount',
      summary: "Change the caller's account",
      description: 'Omitted fields stay; null clears a field. The role and the user name cannot be changed.',
      body: profile,
      response: answers(userSchema),
    },
    handler: async (request, reply) => {
      const { userId } = callerOf(request);
      const outcome = await accounts.updateMe(
        commandContext(request),
        userId,
        request.headers['if-match'],
        request.body,
      );
      setCommandHeaders(reply, outcome);
      return ok(outcome.kind === 'done' ? outcome.result : await accounts.me(userId));
    },
  });

  app.put('/api/auth/password', {
    config: { access: 'anyone', takes: 'json', refuses: ['rate_limited'] },
    schema: {
      operationId: 'changeOwnPassword',
      summary: "Change the caller's password",
      description:
        'Ends all sign-ins of the user, including this one, and answers with a new token, or sets it as a cookie if the request used one. A wrong current password is a 400 that names the field, and counts as a failed sign-in.',
      body: passwords,
      response: answers(newToken),
    },
    handler: async (request, reply) => {
      const outcome = await accounts.changePassword(
        commandContext(request),
        callerOf(request).userId,
        request.headers['if-match'],
        plainIp(request.ip),
        request.body,
      );
      setCommandHeaders(reply, outcome);
      if (!byCookie(request)) return ok(tokenView(outcome.result));
      setSessionCookie(request, reply, outcome.result);
      return ok(cookieView(outcome.result));
    },
  });
}
