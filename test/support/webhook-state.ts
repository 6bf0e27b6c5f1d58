/** Webhooks for tests of what delivers to them. */
import { webhookDefaults, type WebhookState } from '../../src/domain/webhook/webhook.js';

/** An enabled webhook for commands that was made then, without a secret. */
export function webhookState(id: string, made: string, fields: Partial<WebhookState> = {}): WebhookState {
  return {
    id,
    ...webhookDefaults,
    name: id,
    url: 'http://a.example',
    types: ['command'],
    filters: {},
    enabled: true,
    secret: null,
    former_secret: null,
    former_secret_until: null,
    cursor: null,
    since: 7,
    since_at: made,
    tries_since: 7,
    stopped: null,
    created_at: made,
    updated_at: made,
    version: 1,
    ...fields,
  };
}
