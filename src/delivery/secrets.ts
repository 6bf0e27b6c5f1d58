/**
 * Opens the secrets of a compiled snapshot. The compiler leaves placeholders, so that what it makes can be compared,
 * stored and shown; only here do they become bytes, and only on their way to the agent.
 * Implements `docs/architecture.md`: "turns a fleet into rules with placeholders where secrets go".
 */
import type { NodeSnapshot, SecretPlaceholder } from '../domain/snapshot/snapshot.js';
import type { Keyring } from '../security/keyring.js';
import { isSealedValue } from '../security/sealing.js';

/** Gives the bytes that a placeholder stands for, at once when their key is at hand. Throws when they are gone. */
export type SecretOpener = (placeholder: SecretPlaceholder) => Uint8Array | Promise<Uint8Array>;

export type OpenedSecrets = ReadonlyMap<SecretPlaceholder, Uint8Array>;

/** A secret that can't be opened, now or ever. The message names the place, never the value. */
export class SecretUnreadableError extends Error {
  constructor(placeholder: SecretPlaceholder, reason: string) {
    super(`the secret ${placeholder.field} of ${placeholder.resource_id} can't be opened: ${reason}`);
    this.name = 'SecretUnreadableError';
  }
}

/** Every placeholder of a snapshot, in the snapshot's order. */
export function placeholdersOf(snapshot: NodeSnapshot): readonly SecretPlaceholder[] {
  return snapshot.udp_rules.flatMap((rule) => (rule.noise_private_key === null ? [] : [rule.noise_private_key]));
}

/**
 * Opens all secrets of a snapshot: a plain value, not a promise, when none has to be waited for.
 * @throws SecretUnreadableError, or what the key store throws
 */
export function openSecrets(snapshot: NodeSnapshot, open: SecretOpener): OpenedSecrets | Promise<OpenedSecrets> {
  const placeholders = placeholdersOf(snapshot);
  if (placeholders.length === 0) return new Map();
  const results = placeholders.map((placeholder) => [placeholder, open(placeholder)] as const);
  const ready = new Map<SecretPlaceholder, Uint8Array>();
  for (const [placeholder, bytes] of results) if (!(bytes instanceof Promise)) ready.set(placeholder, bytes);
  if (ready.size === results.length) return ready;
  return Promise.all(results.map(async ([placeholder, bytes]) => [placeholder, await bytes] as const)).then(
    (entries) => new Map(entries),
  );
}

/** Opens with the data keys of the installation. */
export function openerOf(keyring: Pick<Keyring, 'open' | 'openSync'>): SecretOpener {
  return (placeholder) => {
    const { secret } = placeholder;
    if (!isSealedValue(secret)) throw new SecretUnreadableError(placeholder, 'it has not the form of a sealed value');
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
      throw new SecretUnreadableError(placeholder, 'its data key was deleted');
    case 'refused':
      throw new SecretUnreadableError(placeholder, result.reason);
  }
}
