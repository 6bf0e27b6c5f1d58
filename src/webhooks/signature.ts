/**
 * Signatures of Standard Webhooks: HMAC-SHA256 over id, time and body, one for each valid secret. Pure.
 * Implements `docs/contract/automation.md#webhooks`.
 */
import { createHmac } from 'node:crypto';

export const secretBytes = 32;

/** A secret as shown to its owner. */
export function secretText(secret: Uint8Array): string {
  return `whsec_${Buffer.from(secret).toString('base64')}`;
}

/** @param seconds since the epoch @param secrets the newest first, at least one */
export function signedHeaders(
  id: string,
  seconds: number,
  body: string,
  secrets: readonly Uint8Array[],
): { readonly [name: string]: string } {
  const signatures = secrets.map(
    (secret) => `v1,${createHmac('sha256', secret).update(`${id}.${seconds}.${body}`).digest('base64')}`,
  );
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': signatures.join(' ') };
}
