/** The routes of webhooks, for admins only. Implements `docs/contract/automation.md#webhooks`. */
import { z } from 'zod';
import type { NewWebhook, WebhookChanges } from '../../../commands/handlers-port.js';
import type { WebhookState } from '../../../domain/webhook/webhook.js';
import { limits } from '../../../kernel/limits.js';
import { answers, ok } from '../answers/envelope.js';
import { commandContext, setCommandHeaders } from '../checks/consistency.js';
import { orNotFound, pathId } from '../checks/path-id.js';
import type { RestApp, RestDeps } from '../deps.js';
import { component, documented } from '../schemas/documented.js';
import { resourceRoutes } from './resource-routes.js';
import {
  bodiesOf,
  createdSchema,
  defaultsOf,
  deliverySchema,
  resumeBody,
  updatedSchema,
  viewOf,
  webhookSchema,
  type WebhookView,
} from './webhook-schema.js';

const what = 'webhook';

export function webhookRoutes(app: RestApp, deps: RestDeps): void {
  const queries = deps.fleet.resources.webhook;
  const commands = deps.commands.webhooks;
  const { webhooks } = deps;

  async function views(all: readonly WebhookState[]): Promise<readonly WebhookView[]> {
    const progress = await webhooks.progress(all);
    return all.flatMap((webhook, index) => {
      const known = progress[index];
      return known === undefined ? [] : [viewOf(webhook, known)];
    });
  }
  const view = async (webhook: WebhookState): Promise<WebhookView> => orNotFound((await views([webhook]))[0], what);

  resourceRoutes(app, {
    path: '/api/webhooks',
    what,
    access: { read: 'admin', write: 'admin' },
    names: { one: 'Webhook', many: 'Webhooks' },
    summaries: {
      list: 'List webhooks',
      create: 'Create a webhook; its secret is shown this once',
      get: 'Get a webhook',
      update: 'Change a webhook, or replace its secret',
      remove: 'Delete a webhook',
    },
    details: {
      create: `It begins behind its own creation. At most ${limits.webhooks.inAll}; more are a 409. An address in the URL that is not public is a 400 unless \`SVC_WEBHOOK_ALLOW\` has it; a name is judged when it is dialled.`,
      update: 'A changed `url` is tried at once. With `rotate_secret`, two secrets sign for 24 hours.',
    },
    shape: {},
    bodies: bodiesOf(webhooks.mayDial),
    inFile: null,
    schema: webhookSchema,
    createdSchema,
    updatedSchema,
    ...queries,
    views,
    create: (context, _definition, checked) => {
      const given = checked as Pick<NewWebhook, 'name' | 'url'> & Partial<NewWebhook>;
      return commands.create(context, { ...defaultsOf(given.format ?? 'standard'), ...given });
    },
    createdView: async ({ webhook, secret }) => ({ ...(await view(webhook)), secret }),
    // The secret itself is not stored in clear.
    repeated: { secret: null },
    update: (context, id, ifMatch, changes: WebhookChanges) => commands.update(context, id, ifMatch, changes),
    updatedView: async ({ webhook, secret }): Promise<WebhookView> => ({
      ...(await view(webhook)),
      ...(secret === undefined ? {} : { secret }),
    }),
    remove: commands.remove,
  });
  actionRoutes(app, deps, view);
}

/** The actions on a webhook besides changing it. */
function actionRoutes(
  app: RestApp,
  { fleet, webhooks, commands }: RestDeps,
  view: (webhook: WebhookState) => Promise<WebhookView>,
): void {
  const queries = fleet.resources.webhook;

  app.post('/api/webhooks/:id/resume', {
    config: { access: 'admin', takes: 'optional', refuses: ['conflict'] },
    schema: {
      operationId: 'resumeWebhook',
      summary: 'Resume a stopped or failing webhook now',
      description:
        'It tries the failed item again, or the next one with `skip`. A webhook that delivers is a 409 unless `after` says where to continue; a disabled one is a 409.',
      body: resumeBody,
      response: answers(webhookSchema),
    },
    handler: async (request, reply) => {
      const id = pathId(request.params, what);
      const outcome = await commands.webhooks.resume(commandContext(request), id, request.body);
      setCommandHeaders(reply, outcome);
      return ok(await view(outcome.kind === 'done' ? outcome.result : orNotFound(queries.get(id), what)));
    },
  });

  app.post('/api/webhooks/:id/ping', {
    config: { access: 'admin', takes: 'none', mayOnlyLook: true, refuses: ['rate_limited'] },
    schema: {
      operationId: 'pingWebhook',
      summary: 'Send a ping now, in any state, and answer with the result',
      description: 'The body is `{type: "ping", at}`. The state stays as it is.',
      response: answers(deliverySchema),
    },
    handler: async (request) => ok(await webhooks.ping(pathId(request.params, what))),
  });

  app.get('/api/webhooks/:id/deliveries', {
    config: { access: 'admin', takes: 'none' },
    schema: {
      operationId: 'listWebhookDeliveries',
      summary: `List the last ${limits.webhooks.deliveries} attempts, newest first`,
      description: 'Attempts are kept in the read store only.',
      response: answers(
        component('WebhookDeliveries', 'The newest attempts', {
          items: documented(z.array(deliverySchema), 'Newest first'),
        }),
      ),
    },
    handler: async (request) => {
      const id = pathId(request.params, what);
      orNotFound(queries.get(id), what);
      return ok({ items: await webhooks.deliveries(id) });
    },
  });
}
