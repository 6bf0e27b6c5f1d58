/**
 * Hashes of request bodies that hold a password, for the log. SHA-256 alone would let whoever reads the log try passwords
 * millions of times faster than against a stored hash; keyed, it tells only the service whether two bodies are equal.
 * Implements `docs/contract/rest.md#consistency`, `Idempotency-Key`.
 */
import { createHmac, hkdfSync } from 'node:crypto';

const salt = 'svc-body-v1';

/**
 * @param identity the private key of the service's identity: it is the same on every instance and never replaced
 * @returns a function from the hex hash of a body to another one
 */
export function bodyHashBlinder(identity: Uint8Array): (hash: string) => string {
  const key = new Uint8Array(hkdfSync('sha256', identity, salt, 'idempotency', 32));
  return (hash) => createHmac('sha256', key).update(hash).digest('hex');
}
