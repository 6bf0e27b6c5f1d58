/**
 * The identity of an installation: the one event of `svc-service`. It is written at the first start, by an append that
 * expects no stream, so that of several instances only one creates it.
 * Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet`.
 */
import type { EventSchemas } from '../resource/declaration.js';
import type { SealedSecret } from '../secret/sealed.js';

export type ServiceEvent = {
  readonly type: 'ServiceIdentityCreated';
  readonly data: {
    readonly installation_id: string;
    /** X25519, base64url. */
    readonly static_public: string;
    readonly static_private: SealedSecret;
    /** Ed25519, base64url. */
    readonly signing_public: string;
    readonly signing_private: SealedSecret;
  };
};

export const serviceEvents: EventSchemas<ServiceEvent> = {
  ServiceIdentityCreated: { schemaVersion: 1 },
};
