/**
 * Opens the secrets of a compiled snapshot. The compiler leaves placeholders, so that its output can be compared and
 * shown; they become bytes here, and only for a snapshot on its way to the agent.
 * Implements `docs/contract/domain.md#commands-and-events` (sealed secrets).
 */
import type { NodeSnapshot, SecretPlaceholder } from '../domain/snapshot/snapshot.js';
import type { Keyring } from '../security/keyring.js';
import { isSealedValue } from '../security/sealing.js';

/** Opens one placeholder; without a promise when its data key is in memory. @throws SecretUnreadableError */
export type SecretOpener = (placeholder: SecretPlaceholder) => Uint8Array | Promise<Uint8Array>;

export type OpenedSecrets = ReadonlyMap<SecretPlaceholder, Uint8Array>;

/** A secret that cannot be opened, and a retry will not help. The message names its place, never its value. */
export class SecretUnreadableError extends Error {
  /** Its data key was deleted, on purpose. */
  readonly shredded: boolean;

  constructor(placeholder: SecretPlaceholder, reason: string, shredded = false) {
    super(`the secret ${placeholder.field} of ${placeholder.resource_id} cannot be opened: ${reason}`);
    this.name = 'SecretUnreadableError';
    this.shredded = shredded;
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

const noSecrets: OpenedSecrets = new Map();

/**
 * Opens all secrets of a snapshot. Returns a plain value, not a promise, when every data key is in memory.
 * @throws SecretUnreadableError, and what the key store throws
 */
export function openSecrets(snapshot: NodeSnapshot, open: SecretOpener): OpenedSecrets | Promise<OpenedSecrets> {
  const placeholders = placeholdersOf(snapshot);
  if (placeholders.length === 0) return noSecrets;
  const results = placeholders.map((placeholder) => [placeholder, open(placeholder)] as const);
  const ready = new Map<SecretPlaceholder, Uint8Array>();
  for (const [placeholder, bytes] of results) if (!(bytes instanceof Promise)) ready.set(placeholder, bytes);
  if (ready.size === results.length) return ready;
  return Promise.all(results.map(async ([placeholder, bytes]) => [placeholder, await bytes] as const)).then(
    (entries) => new Map(entries),
  );
}

/** An opener that uses the installation's data keys. */
export function openerOf(keyring: Pick<Keyring, 'open' | 'openSync'>): SecretOpener {
  return (placeholder) => {
    const { secret } = placeholder;
    if (!isSealedValue(secret)) throw new SecretUnreadableError(placeholder, 'it is not a sealed value');
    const context = {
      stream: placeholder.stream,
      resourceId: placeholder.resource_id,
      field: placeholder.field,
    };
    const cached = keyring.openSync(secret, context);
    if (cached.kind !== 'not_cached') return plaintextOf(placeholder, cached);
    return keyring.open(secret, context).then((result) => plaintextOf(placeholder, result));
  };
}

function plaintextOf(placeholder: SecretPlaceholder, result: Awaited<ReturnType<Keyring['open']>>): Uint8Array {
  switch (result.kind) {
    case 'opened':
      return result.plaintext;
    case 'shredded':
      throw new SecretUnreadableError(placeholder, 'its data key was deleted', true);
    case 'refused':
      throw new SecretUnreadableError(placeholder, result.reason);
  }
}
