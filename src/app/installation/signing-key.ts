/**
 * The key that signs tokens, replaced: by `npm run keys:rotate-signing`, which appends the new key to `svc-service`,
 * and in every running instance, which follows that stream. Every token that the earlier key signed ends with it. The
 * identity that agents pin stays. See `docs/how-to/rotate-keys.md#signing-key`.
 */
import { readCommand } from '../../domain/log/upcast.js';
import type { ServiceKeyEvent } from '../../domain/service/identity.js';
import { bringsSigningKey, serviceEvent } from '../../domain/service/identity.js';
import { sleep } from '../../kernel/background.js';
import { errorText, ServiceError } from '../../kernel/errors.js';
import { lastEvent, streams } from '../../kernel/event.js';
import type { Logger } from '../../kernel/logger.js';
import { backoff, storeRetry } from '../../kernel/retry.js';
import { propose } from '../../commands/proposal.js';
import { systemContext } from '../../commands/system.js';
import { tuning } from '../../commands/tuning.js';
import type { Keyring } from '../../security/keyring.js';
import { generateTokenSeed } from '../../security/tokens.js';
import type { Tokens } from '../../security/tokens.js';
import type { LogFold } from '../../projections/log-follower.js';
import type { ServiceIdentity, ServiceIdentityOptions } from './service-identity.js';
import { base64url, newestSigningKey, openSigningSeed, rawPublicKey, signingPlace } from './service-identity.js';

/**
 * Replaces the key that signs tokens.
 * @returns the new public key, 32 bytes in base64url
 * @throws ServiceError `unavailable`, `conflict` when the service has never started on these stores
 */
export async function replaceSigningKey({ eventStore, keyring, clock, ids }: ServiceIdentityOptions): Promise<string> {
  for (let tries = 0; tries < tuning.gatewayAttempts; tries += 1) {
    const newest = await newestSigningKey(eventStore);
    if (newest === undefined) throw new ServiceError('conflict', 'the service has never started on these stores');
    const { installation_id } = newest.event.data;
    const seed = generateTokenSeed();
    const data = {
      installation_id,
      signing_public: base64url(rawPublicKey(seed)),
      signing_private: keyring.seal(seed, signingPlace(installation_id)),
    };
    const proposal = propose([{ type: 'TokenSigningKeyReplaced', data }], systemContext('key rotation'), clock, ids);
    await eventStore.append(streams.service, newest.at.revision, proposal.events);
    // The log decides what was written, whatever the answer: the answer may be lost after the append.
    const now = await newestSigningKey(eventStore);
    if (now?.event.data.signing_public === data.signing_public) return data.signing_public;
    await sleep(backoff(storeRetry, tries));
  }
  throw new ServiceError('unavailable', 'the event store did not take the new key that signs tokens');
}

/** The key that signs tokens, as `svc-service` has it: a fold in memory. */
export interface SigningKeyFold extends LogFold {
  /** Why this instance does not have the newest key; until it has, it accepts no earlier token. Empty when it has. */
  problems(): readonly string[];
}

export interface SigningKeyOptions {
  readonly keyring: Keyring;
  readonly tokens: Pick<Tokens, 'replaceKey'>;
  /** The key that `tokens` signs with, and where it was read. */
  readonly current: Pick<ServiceIdentity, 'signingPublic' | 'at'>;
  readonly logger: Logger;
}

/** Gives `tokens` each new key that the log brings. */
export function foldSigningKey({ keyring, tokens, current, logger }: SigningKeyOptions): SigningKeyFold {
  let { at, signingPublic } = current;
  let problem: string | undefined;

  function take(event: ServiceKeyEvent): void {
    if (event.data.signing_public === signingPublic) return;
    signingPublic = event.data.signing_public;
    // The earlier key ends at once, also when the new one cannot be read.
    tokens.replaceKey(generateTokenSeed());
    try {
      tokens.replaceKey(openSigningSeed(keyring, event));
      problem = undefined;
      logger.info({ signing_public: signingPublic }, 'tokens are signed by the newest key of the log');
    } catch (error) {
      problem = `the new key that signs tokens cannot be read: ${errorText(error)}`;
      logger.error({}, problem);
    }
  }

  return {
    stream: streams.service,
    revision: () => at.revision,
    position: () => at.position,
    apply(commands) {
      for (const command of commands) {
        const { revision, position } = lastEvent(command);
        if (revision <= at.revision) continue;
        const event = serviceEvent(readCommand(command).events[0]);
        if (bringsSigningKey(event)) take(event);
        at = { revision, position };
      }
    },
    moved: () => undefined,
    stopped(error) {
      problem = `the key that signs tokens is out of date: ${errorText(error)}`;
      logger.error({ error: errorText(error) }, 'the key that signs tokens no longer follows the log');
    },
    problems: () => (problem === undefined ? [] : [problem]),
  };
}
