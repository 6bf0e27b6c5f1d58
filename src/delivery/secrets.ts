/**
 * Opens the secrets of a compiled snapshot while it is encoded. The compiler's output has placeholders, so that it can be
 * compared and shown. Implements `docs/contract/domain.md#commands-and-events` (sealed secrets).
 */
import type { SecretPlaceholder } from '../domain/snapshot/snapshot.js';
import type { Keyring } from '../security/keyring.js';
import { isSealedValue } from '../security/sealing.js';

/** Opens one placeholder. @throws SecretUnreadableError */
export type SecretOpener = (placeholder: SecretPlaceholder) => Uint8Array;

/** A secret cannot be opened, and a retry will not help. The message names its place, never its value. */
class SecretUnreadableError extends Error {
  constructor(placeholder: SecretPlaceholder, reason: string) {
    super(`the secret ${placeholder.field} of ${placeholder.resource_id} cannot be opened: ${reason}`);
    this.name = 'SecretUnreadableError';
  }
}

export function openerOf(keyring: Pick<Keyring, 'open'>): SecretOpener {
  return (placeholder) => {
    const { secret, stream, resource_id: resourceId, field } = placeholder;
    if (!isSealedValue(secret)) throw new SecretUnreadableError(placeholder, 'it is not a sealed value');
    const opened = keyring.open(secret, { stream, resourceId, field });
    if (opened.kind === 'opened') return opened.plaintext;
    throw new SecretUnreadableError(placeholder, opened.reason);
  };
}
