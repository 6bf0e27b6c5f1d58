/** The routes of join tokens. Implements `docs/contract/joining.md#join-tokens`. */
import { z } from 'zod';
import type { NewJoinToken } from '../../../commands/handlers-port.js';
import { hasExpired, isForgotten, type JoinTokenState } from '../../../domain/join-token/join-token.js';
import { limits } from '../../../kernel/limits.js';
import type { RestApp, RestDeps, RestOptions } from '../deps.js';
import { joinAddresses, joinCommand } from '../join-command.js';
import { component, documented, sample } from '../schemas/documented.js';
import { body, integer, labels, name, nfcText } from '../schemas/fields.js';
import { idOf, nodeId, timeOf, timestamps } from '../schemas/shared-schemas.js';
import { resourceRoutes } from './resource-routes.js';

const { uses, hours, live, nodesShown } = limits.fleet.joinTokens;

const about = {
  name: 'Unique among the join tokens that have not ended',
  uses: 'How many nodes it makes at most',
  labels: 'Labels of each node',
  name_prefix: 'Before the name that a machine gives itself; null for none',
};

const shown = {
  id: idOf('Id, a UUID', sample.entry),
  name: documented(z.string(), about.name, 'rack-7'),
  uses: documented(z.int(), about.uses, 20),
  used: documented(z.int(), 'How many nodes it has made, also those that are gone', 3),
  expires_at: timeOf('When it expires', sample.later),
  expired: documented(z.boolean(), 'Whether it has expired; one that has ended stays in the list for 30 days', false),
  labels: documented(z.record(z.string(), z.string()), about.labels, { region: 'eu' }),
  name_prefix: documented(z.string().nullable(), about.name_prefix, 'edge-'),
  nodes: documented(
    z.array(
      component('JoinedNode', 'A node that a machine made by itself', {
        id: nodeId,
        name: documented(z.string(), 'Its name; of a deleted one, the name that it was given', 'edge-fra-1'),
        joined_at: timeOf('When it joined'),
      }),
    ),
    `The nodes that it has made, newest first, at most ${nodesShown}`,
  ),
  created_by: documented(
    component('JoinTokenMaker', 'Who made a join token', {
      id: idOf('Id of the user', sample.user),
      name: documented(z.string(), 'Its user name', 'admin'),
    }),
    'Who made it',
  ),
};

const joinTokenSchema = component('JoinToken', 'Lets machines become nodes by themselves', { ...shown, ...timestamps });

const once = 'shown only once, null in a repeat';
const createdSchema = component('CreatedJoinToken', 'A new join token with its text', {
  ...shown,
  ...timestamps,
  token: documented(z.string().nullable(), `The token; ${once}`, 'svcjoin1_…'),
  command: documented(
    z.string().nullable(),
    `The line to paste into a root shell of a machine; ${once}`,
    "curl -fsSL --retry 9 'https://gateway.example/join.sh' | SVC_JOIN_TOKEN='svcjoin1_…' sh -s -- --endpoint 'http://gateway.example:8443'",
  ),
});

const newJoinToken = body({
  name: documented(name, about.name, 'rack-7'),
  uses: documented(integer(1, uses.max).optional(), `${about.uses}; default \`${uses.default}\``, 20),
  expires_in_hours: documented(
    integer(1, hours.max).optional(),
    `Hours until it expires; default \`${hours.default}\``,
    72,
  ),
  labels: documented(labels.optional(), `${about.labels}; default \`{}\``, { region: 'eu' }),
  name_prefix: documented(nfcText(1, limits.rest.nameChars).optional(), about.name_prefix, 'edge-'),
}).meta({ id: 'NewJoinToken', description: 'Create a join token' });

type Body = Pick<NewJoinToken, 'name'> & Partial<NewJoinToken>;

export function joinTokenRoutes(app: RestApp, deps: RestDeps, options: RestOptions): void {
  const queries = deps.fleet.resources.join_token;
  const commands = deps.commands.joinTokens;
  const isListed = (token: JoinTokenState): boolean => !isForgotten(token, deps.clock.now());

  function view({ verifier: _secret, joins, ...token }: JoinTokenState) {
    const newest = joins.slice(-nodesShown).toReversed();
    return {
      ...token,
      used: joins.length,
      expired: hasExpired(token, deps.clock.now()),
      nodes: newest.map(({ node_id: id, node_name, at }) => ({
        id,
        name: deps.fleet.nameOf('node', id) ?? node_name,
        joined_at: at,
      })),
    };
  }

  resourceRoutes(app, {
    path: '/api/join-tokens',
    what: 'join token',
    names: { one: 'JoinToken', many: 'JoinTokens' },
    summaries: {
      list: 'List join tokens',
      create: 'Create a join token; its text and the line to paste are shown only once',
      get: 'Get a join token',
      remove: 'Delete a join token',
    },
    details: {
      list: 'Expired and used up ones stay in the list for 30 days.',
      create: `At most ${live} that have not ended; more are a 409. Without \`SVC_PUBLIC_URL\`, a \`Host\` that is no DNS name or IP address is a 400. Where machines reach this service over plain http, the line needs the agent on the machine: set \`SVC_PUBLIC_URL\` to an https address for the line that installs it.`,
      remove: 'Every live instance refuses it before the answer. The nodes that it has made stay.',
    },
    shape: {},
    bodies: { create: newJoinToken },
    inFile: null,
    schema: joinTokenSchema,
    createdSchema,
    list: (paged) => queries.list({ ...paged, matches: isListed }),
    get(id) {
      const token = queries.get(id);
      return token !== undefined && isListed(token) ? token : undefined;
    },
    views: (tokens) => tokens.map(view),
    async create(context, _definition, checked, request) {
      // Before anything is written: a token must not be lost for a wrong header.
      const addresses = joinAddresses(request, options);
      const isServed = (await options.agentProgram()) !== undefined;
      const { name: called, ...given } = checked as Body;
      const outcome = await commands.create(context, {
        name: called,
        uses: given.uses ?? uses.default,
        expires_in_hours: given.expires_in_hours ?? hours.default,
        labels: given.labels ?? {},
        name_prefix: given.name_prefix ?? null,
      });
      if (outcome.kind !== 'done') return outcome;
      const { joinToken, token } = outcome.result;
      return { ...outcome, result: { joinToken, token, command: joinCommand(addresses, token, isServed) } };
    },
    createdView: ({ joinToken, ...secrets }) => ({ ...view(joinToken), ...secrets }),
    // Neither is stored.
    repeated: { token: null, command: null },
    remove: commands.remove,
  });
}
