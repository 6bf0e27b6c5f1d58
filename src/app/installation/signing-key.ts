/**
 * Replaces the key that signs tokens: `npm run keys:rotate-signing` appends the new key to `svc-service`, and every
 * running instance follows that stream. All tokens signed with the earlier key end. The identity that agents pin stays.
 * See `docs/how-to/rotate-keys.md#signing-key`.
 */
import type { ServiceEvent } from '../../domain/service/identity.js';
import type { ServiceState } from '../../domain/service/state.js';
import { errorText, ServiceError } from '../../kernel/errors.js';
import { lastEvent, streams } from '../../kernel/event.js';
import type { Logger } from '../../kernel/logger.js';
import { levelOf } from '../../storage/broken-log.js';
import type { Keyring } from '../../security/keyring.js';
import type { LogChain } from '../../security/log-chain/log-chain.js';
import { generateTokenSeed, type Tokens } from '../../security/tokens.js';
import { MissingEventsError, type LogFold } from '../../projections/log-follower.js';
import { openSigningSeed, publicKeyText, signingPlace, type ServiceIdentityOptions } from './service-identity.js';
import { followService, writeService } from './service-stream.js';

/**
 * Replaces the key that signs tokens.
 * @returns the new public key, 32 bytes in base64url
 * @throws ServiceError `unavailable`, `conflict` when the service has never started on these stores
 */
export async function replaceSigningKey(options: ServiceIdentityOptions): Promise<string> {
  const { keyring } = options;
  const { installationId: installation_id } = keyring;
  const seed = generateTokenSeed();
  const signing_public = publicKeyText(seed);
  const signing_private = keyring.seal(seed, signingPlace(installation_id));
  const data = { installation_id, signing_public, signing_private };
  await writeService(options, 'key rotation', ({ signingKey }): ServiceEvent | undefined => {
    if (signingKey === undefined) throw new ServiceError('conflict', 'the service has never started on these stores');
    return signingKey.signing_public === signing_public ? undefined : { type: 'TokenSigningKeyReplaced', data };
  });
  return signing_public;
}

/** `svc-service` in memory, for the key that signs tokens. */
export interface SigningKeyFold extends LogFold {
  state(): ServiceState;
  /** Why this instance does not have the newest key; empty when it has. Until then, it accepts no earlier token. */
  problems(): readonly string[];
}

export interface SigningKeyOptions {
  readonly keyring: Keyring;
  readonly tokens: Pick<Tokens, 'replaceKey'>;
  readonly logChain: Pick<LogChain, 'follow'>;
  /** `svc-service` as read, with the key that `tokens` signs with. */
  readonly at: ServiceState;
  readonly logger: Logger;
}

/** Passes each new key from the log to `tokens`. */
export function foldSigningKey({ keyring, logChain, tokens, logger, ...options }: SigningKeyOptions): SigningKeyFold {
  let { at } = options;
  let problem: string | undefined;

  function take(key: NonNullable<ServiceState['signingKey']>): void {
    // The earlier key ends at once, even when the new one cannot be read.
    tokens.replaceKey(generateTokenSeed());
    try {
      tokens.replaceKey(openSigningSeed(keyring, key));
      problem = undefined;
      logger.info({ signing_public: key.signing_public }, 'tokens are signed with the newest key of the log');
    } catch (error) {
      problem = `the new key that signs tokens cannot be read: ${errorText(error)}`;
      logger.error({}, problem);
    }
  }

  return {
    streams: [streams.service],
    state: () => at,
    revision: () => at.revision,
    position: () => at.position,
    apply(commands) {
      for (const command of commands) {
        if (lastEvent(command).revision <= at.revision) continue;
        const [{ revision }] = command.events;
        if (revision !== at.revision + 1) {
          throw new MissingEventsError(`${streams.service} continues at ${revision} instead of ${at.revision + 1}`);
        }
        const { signingKey: before } = at;
        at = followService(at, command, logChain);
        if (at.signingKey !== undefined && at.signingKey !== before) take(at.signingKey);
      }
    },
    moved: () => undefined,
    stopped(error) {
      problem = `the key that signs tokens is out of date: ${errorText(error)}`;
      logger[levelOf(error)]({ error: errorText(error) }, 'the key that signs tokens no longer follows the log');
    },
    problems: () => (problem === undefined ? [] : [problem]),
  };
}
