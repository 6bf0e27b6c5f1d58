/** Events of `svc-service`: made once, at the first start; the first append expects no stream. */
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

/** Today's shapes. */
export const serviceEvents: { readonly [T in ServiceEvent['type']]: { readonly schemaVersion: number } } = {
  ServiceIdentityCreated: { schemaVersion: 1 },
};
