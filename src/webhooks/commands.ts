/**
 * Command handlers of webhooks: create and seal secrets, and turn the requested place into a cursor, before a command is decided.
 * The rules are in `src/domain/webhook`. Implements `docs/contract/automation.md#webhooks`.
 */
import { randomBytes } from 'node:crypto';
import type { CommandHandlers } from '../commands/handlers-port.js';
import type { CommandOutcome, Gateway } from '../commands/port.js';
import { present } from '../commands/resources.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import type { FleetCommand } from '../domain/fleet/resources.js';
import { webhookStateOf } from '../domain/webhook/cursors.js';
import { webhookDefaults, webhookKey, type WebhookFormat, type WebhookState } from '../domain/webhook/webhook.js';
import type { Feed } from '../feed/port.js';
import { timestamp, type Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import type { Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import type { Keyring } from '../security/keyring.js';
import { secretPlace } from './messages.js';
import { secretBytes, secretText } from './signature.js';
import type { WebhookService } from './webhooks.js';

export interface WebhookHandlersDeps {
  readonly gateway: Pick<Gateway<Fleet, FleetCommand>, 'execute'>;
  readonly keyring: Pick<Keyring, 'seal'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly ids: Ids;
  readonly feed: Pick<Feed, 'resolve'>;
  readonly webhooks: Pick<WebhookService, 'checkpoint' | 'behindNext'>;
  webhook(id: string): WebhookState | undefined;
  /** Whether there is a server for mail. */
  readonly sendsMail: boolean;
}

export function createWebhookHandlers(deps: WebhookHandlersDeps): CommandHandlers['webhooks'] {
  const { gateway, keyring, clock, ids, feed, webhooks } = deps;

  /** A new secret as text and sealed. */
  function newSecret(id: string) {
    const secret = randomBytes(secretBytes);
    const [text, sealed] = [secretText(secret), keyring.seal(secret, secretPlace(id))];
    secret.fill(0);
    return { text, sealed };
  }

  const stateOf = (id: string) => (fleet: Fleet) => present(fleet.get(webhookKey, id));

  /** @throws ServiceError `invalid_request` */
  function requireMail(format: WebhookFormat): void {
    if (format !== 'email' || deps.sendsMail) return;
    throw new ServiceError(
      'invalid_request',
      'format: email needs SVC_SMTP_URL, which this service was started without',
    );
  }

  /** Where to resume: a cursor or `start`; null: at the current place. @throws ServiceError */
  async function placeAfter(webhook: WebhookState, after: string | undefined, skip: boolean): Promise<string | null> {
    if (after !== undefined) return (await feed.resolve(after)).cursor ?? 'start';
    return skip ? webhooks.behindNext(webhook) : null;
  }

  return {
    async create(context, fields) {
      const id = ids.next();
      requireMail(fields.format);
      const made = fields.format === 'standard' ? newSecret(id) : undefined;
      const secrets = { secret: made?.sealed ?? null, former_secret: null, former_secret_until: null };
      const outcome = await gateway.execute({ type: 'CreateWebhook', id, ...fields, ...secrets }, context, stateOf(id));
      return withSecret(outcome, made?.text ?? null);
    },
    async update(context, id, ifMatch, { rotate_secret = false, ...changes }) {
      const before = deps.webhook(id);
      const format = changes.format ?? before?.format ?? 'standard';
      if (changes.format !== undefined) requireMail(format);
      if (rotate_secret && format !== 'standard') {
        const message = `rotate_secret: expected a webhook of the format standard; ${format} has no secret`;
        throw new ServiceError('invalid_request', message);
      }
      const fields = { ...(before === undefined || format === before.format ? {} : notTakenBy(format)), ...changes };
      const hasNone = before !== undefined && before.secret === null && format === 'standard';
      const made = rotate_secret || hasNone ? newSecret(id) : undefined;
      const until = timestamp(clock.now() + limits.webhooks.formerSecretMs);
      const secrets = made === undefined ? {} : { secret: made.sealed, former_secret_until: until };
      const command = { type: 'UpdateWebhook', id, ifMatch, ...fields, ...secrets } as const;
      return withSecret(await gateway.execute(command, context, stateOf(id)), made?.text);
    },
    async remove(context, id, ifMatch) {
      const webhook = deps.webhook(id);
      // A revert of the delete resumes here; if unknown, it resumes after itself.
      const checkpoint = webhook && (await webhooks.checkpoint(webhook).catch(() => undefined));
      const cursor = checkpoint === undefined ? null : (checkpoint.place.cursor ?? 'start');
      const command = { type: 'DeleteWebhook', id, ifMatch, cursor } as const;
      return gateway.execute(command, context, () => undefined);
    },
    async resume(context, id, { after, skip = false }) {
      const webhook = deps.webhook(id);
      if (webhook === undefined) throw new ServiceError('not_found', `there is no webhook ${id}`);
      const may = webhook.enabled && webhook.stopped === null;
      const failing = may && webhookStateOf(webhook, (await webhooks.checkpoint(webhook)).tries) === 'failing';
      const resumes = failing || webhook.stopped !== null || after !== undefined;
      const place = resumes ? await placeAfter(webhook, after, skip) : null;
      const command = { type: 'ResumeWebhook', id, ifMatch: undefined, after: place, failing } as const;
      return gateway.execute(command, context, stateOf(id));
    },
  };
}

/** The default of each field that a webhook loses when it changes its format. */
const notTakenBy = (format: WebhookFormat) => ({
  ...(format === 'telegram' ? {} : { chat_id: webhookDefaults.chat_id }),
  ...(format === 'standard' ? { group_secs: webhookDefaults.group_secs } : {}),
});

function withSecret<S extends string | null | undefined>(
  outcome: CommandOutcome<WebhookState>,
  secret: S,
): CommandOutcome<{ readonly webhook: WebhookState; readonly secret: S }> {
  return outcome.kind === 'done' ? { ...outcome, result: { webhook: outcome.result, secret } } : outcome;
}
