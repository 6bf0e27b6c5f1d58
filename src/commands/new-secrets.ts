/**
 * Commands that store a secret which was sealed for them: the data key of one that was certainly not stored is deleted.
 * Not the sealing itself: that is in `src/security/`.
 */
import { errorText, ServiceError } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import type { Keyring } from '../security/keyring.js';
import type { SealedValue } from '../security/sealing.js';
import type { CommandOutcome } from './port.js';

interface NewSecret<R> {
  /** null when the command stores none. */
  readonly sealed: SealedValue | null;
  /** What a log line calls it: `PSK verifier`. */
  readonly what: string;
  /** Whether an accepted command has stored it; when absent, it has. */
  stored?(result: R): boolean;
}

/**
 * Runs a command. A secret whose command is refused, or repeats one that was accepted before, is shredded; one whose
 * command may have been written is kept. Best effort: nothing refers to such a secret.
 */
export async function withNewSecret<R>(
  { keyring, logger }: { readonly keyring: Pick<Keyring, 'shred'>; readonly logger: Logger },
  { sealed, what, stored = () => true }: NewSecret<R>,
  run: () => Promise<CommandOutcome<R>>,
): Promise<CommandOutcome<R>> {
  if (sealed === null) return run();
  const shred = (): Promise<void> =>
    keyring.shred(sealed.key_id).catch((error: unknown) => {
      logger.warn({ error: errorText(error) }, `an unused ${what} could not be shredded`);
    });
  try {
    const outcome = await run();
    if (outcome.kind === 'repeated' || !stored(outcome.result)) await shred();
    return outcome;
  } catch (error) {
    if (error instanceof ServiceError && error.code !== 'unavailable' && error.code !== 'internal') await shred();
    throw error;
  }
}
