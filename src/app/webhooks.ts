/** Webhooks on the core: their delivery, their commands, and their metrics. See `docs/architecture.md`. */
import { hostname } from 'node:os';
import { systemContext } from '../commands/system.js';
import type { WebhookState } from '../domain/webhook/webhook.js';
import { gauge, counter, type NumberSource } from '../instance/metrics.js';
import { formatHostPort } from '../kernel/host-port.js';
import { createWebhookHandlers } from '../webhooks/commands.js';
import { createWebhooks, type WebhookService, type WebhooksDeps } from '../webhooks/webhooks.js';
import type { Config } from './config/config.js';
import type { Core } from './core.js';

/** The parts of the core that webhooks use. */
export type WebhookCore = Pick<
  Core,
  'eventStore' | 'feed' | 'keyring' | 'ids' | 'logger' | 'instanceId' | 'readOnly'
> & {
  readonly readStore: Pick<Core['readStore'], 'collection' | 'leases'>;
  readonly committed: Pick<Core['committed'], 'fleet' | 'onBatch'>;
  readonly fleet: Pick<Core['fleet'], 'execute'>;
  readonly clocks: Pick<Core['clocks'], 'shared'>;
  readonly health: Pick<Core['health'], 'away'>;
  /** For tests. */
  readonly lookup?: WebhooksDeps['lookup'];
};

type WebhookConfig = Pick<Config, 'webhookAllow' | 'publicUrl' | 'mail'> & {
  readonly http: Pick<Config['http'], 'listen'>;
};

export type WebhookParts = Awaited<ReturnType<typeof startWebhooks>>;

/**
 * Starts delivering.
 * @throws ServiceError `unavailable`
 */
export async function startWebhooks(
  core: WebhookCore,
  { webhookAllow: allow, publicUrl, mail, http: { listen } }: WebhookConfig,
) {
  const { eventStore, readStore, feed, keyring, ids, logger, instanceId, committed, fleet, health, readOnly } = core;
  const clock = core.clocks.shared;
  const table = () => committed.fleet().tables.webhook;
  const webhook = (id: string): WebhookState | undefined => table().get(id);
  const service = await createWebhooks({
    eventStore,
    readStore,
    feed,
    keyring,
    ids,
    clock,
    logger,
    instanceId,
    // No two processes on one host listen on the same port. A port chosen by the system says nothing.
    slot: listen.port === 0 ? undefined : `${hostname()} ${formatHostPort(listen)}`,
    allow,
    publicUrl,
    mail,
    lookup: core.lookup,
    all: () => [...table().values()],
    webhook,
    onChange: committed.onBatch,
    readOnly,
    readStoreAway: () => health.away('read store') !== undefined,
    async stop({ id, tries_since }, cursor, reason) {
      const command = { type: 'StopWebhook', id, tries_since, cursor, reason } as const;
      await fleet.execute(command, systemContext('webhook'), () => undefined);
    },
  });
  return {
    service,
    handlers: createWebhookHandlers({
      gateway: fleet,
      keyring,
      clock,
      ids,
      feed,
      webhooks: service,
      webhook,
      sendsMail: mail !== undefined,
    }),
    metrics: () => webhookMetrics(service),
  };
}

function webhookMetrics(service: WebhookService): readonly NumberSource[] {
  return [
    gauge('svc_webhooks', 'Webhooks that this instance delivers, by state.', service.states, 'state'),
    gauge(
      'svc_webhook_lag_seconds',
      'Age of the oldest item that a webhook of this instance still has to send; stopped and disabled ones left out.',
      service.lagSeconds,
    ),
    counter(
      'svc_webhook_deliveries_total',
      'Messages that this instance has sent to receivers, by outcome.',
      service.outcomes,
      'outcome',
    ),
  ];
}
