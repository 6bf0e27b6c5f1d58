/**
 * Opens the secrets of a compiled snapshot. The compiler leaves placeholders, so that its output can be compared and
 * shown; they become bytes here, and only for a snapshot on its way to the agent.
 * Implements `docs/contract/domain.md#commands-and-events` (sealed secrets).
 */
import type { NodeSnapshot, SecretPlaceholder } from '../domain/snapshot/snapshot.js';
import type { Keyring } from '../security/keyring.js';
import { isSealedValue } from '../security/sealing.js';

/** Opens one placeholder. @throws SecretUnreadableError */
export type SecretOpener = (placeholder: SecretPlaceholder) => Uint8Array;

export type OpenedSecrets = ReadonlyMap<SecretPlaceholder, Uint8Array>;

/** A secret that cannot be opened, and a retry will not help. The message names its place, never its value. */
class SecretUnreadableError extends Error {
  constructor(placeholder: SecretPlaceholder, reason: string) {
    super(`the secret ${placeholder.field} of ${placeholder.resource_id} cannot be opened: ${reason}`);
    this.name = 'SecretUnreadableError';
  }
}

/** Every placeholder of a snapshot. Most rules have none, so nothing is listed that is not one. */
function placeholdersOf(snapshot: NodeSnapshot): readonly SecretPlaceholder[] {
  const found: SecretPlaceholder[] = [];
  for (const { reality } of snapshot.tcp_proxy_rules) if (reality !== null) found.push(reality.private_key);
  for (const { reality } of snapshot.quic_rules) found.push(reality.private_key);
  for (const { noise_private_key } of snapshot.udp_rules) if (noise_private_key !== null) found.push(noise_private_key);
  for (const { reality_inbound } of snapshot.l3_rules) {
    if (reality_inbound !== null) found.push(reality_inbound.private_key);
  }
  for (const { private_key_pem } of snapshot.tls_certificates) found.push(private_key_pem);
  return found;
}

/** Opens all secrets of a snapshot. @throws SecretUnreadableError */
export function openSecrets(snapshot: NodeSnapshot, open: SecretOpener): OpenedSecrets {
  return new Map(placeholdersOf(snapshot).map((placeholder) => [placeholder, open(placeholder)]));
}

/** An opener that uses the installation's keyring. */
export function openerOf(keyring: Pick<Keyring, 'open'>): SecretOpener {
  return (placeholder) => {
    const { secret, stream, resource_id: resourceId, field } = placeholder;
    if (!isSealedValue(secret)) throw new SecretUnreadableError(placeholder, 'it is not a sealed value');
    const opened = keyring.open(secret, { stream, resourceId, field });
    if (opened.kind === 'opened') return opened.plaintext;
    throw new SecretUnreadableError(placeholder, opened.reason);
  };
}
