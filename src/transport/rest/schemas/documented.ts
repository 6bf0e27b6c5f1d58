/**
 * The words and examples of single fields in the OpenAPI document, and the values of examples that belong together: one small
 * fleet, invented. No id, key or secret in it is real. Implements `docs/contract/rest.md#beside-api`.
 */
import { z } from 'zod';

/**
 * Adds what the document says about a schema. An example that does not fit the type of the schema does not compile.
 * @param examples without any, the document's example is put together from its parts' examples
 */
export function documented<S extends z.ZodType>(schema: S, description: string, ...examples: readonly z.input<S>[]): S {
  return schema.meta({ description, ...(examples.length === 0 ? {} : { examples: [...examples] }) }) as S;
}

/** An object with a name of its own in the document. */
export function component<S extends z.core.$ZodLooseShape>(id: string, description: string, fields: S) {
  return z.object(fields).meta({ id, description });
}

export const sample = {
  entryNode: '1f0c3f5e-6d0c-4f0b-9a55-3c1f0e6b7a10',
  exitNode: 'f170a8d7-3b88-4a01-9e66-d3d4afeae635',
  upstream: 'fd77427d-c1c0-46ad-889e-81c8b9c25f0f',
  chain: 'd275ef29-f586-48a0-bb06-a68d5bdb3a80',
  deployment: '93165414-16a5-4ecf-96b1-c9b85a914a80',
  keyPair: '066c646d-6234-46fa-accd-9c7a10511eff',
  reality: '8a0bee8b-8782-4218-a3b0-fc4d44f2924e',
  route: 'e4ffd5d9-978e-4e8d-82fa-863569c64117',
  rolloutPolicy: '5b0c2f7e-31c4-4f0e-8a57-0d4d0a8e6c11',
  rollout: '9d1f0a56-7c1b-4f6f-9f3a-5f0a3a7d2b33',
  webhook: '0fb2d1a4-6f0e-4c4b-8d1c-2f6a1b7c9e55',
  network: 'c53ce0d3-3186-48f3-8260-ee3103e0b7d7',
  user: '73869bef-bd59-417f-982f-1c9466b11ea9',
  command: '0a921c95-6082-453d-ba98-8573cb97dc91',
  entry: 'e86c7410-21ab-4b02-9601-365c9755ccf2',
  time: '2030-01-31T12:00:00.000Z',
  later: '2030-01-31T12:10:00.000Z',
  /** SHA-256 of the word "example". */
  pin: 'UNhY4JhezH9gQYqvDMWrWH9CwlcKiECVqejMrND2VFw=',
  fingerprint: '50d858e0985ecc7f60418aaf0cc5ab587f42c2570a884095a9e8ccacd0f6545c',
  publicKey: 'AxCwU6-xIRSh7toFoLz9KfoJMMM85YMSqcRQej4d8uw',
  pem: '-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n',
  pemKey: '-----BEGIN PRIVATE KEY-----\n…\n-----END PRIVATE KEY-----\n',
} as const;
