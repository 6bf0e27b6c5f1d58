/**
 * The keys of an installation. The first start writes the first event of `svc-service` with an append that expects no
 * stream, so only one instance succeeds. Later events replace the key that signs tokens, and record versions of the
 * keyring, which `svc-keyring` holds and only the master key opens (`src/security/keyring.ts`). Implements
 * `docs/contract/domain.md#one-consistency-boundary-the-fleet`.
 */
import { unreachable } from '../../kernel/errors.js';
import { eventOf, streams, type RecordedEvent } from '../../kernel/event.js';
import { eventAudit, masked, type EventAudit } from '../resource/audit-change.js';
import type { EventSchemas } from '../resource/declaration.js';
import type { SealedSecret } from '../secret/sealed.js';

export type ServiceEvent =
  | {
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
    }
  /** Ends every token that the former key signed. */
  | {
      readonly type: 'TokenSigningKeyReplaced';
      readonly data: {
        readonly installation_id: string;
        readonly signing_public: string;
        readonly signing_private: SealedSecret;
      };
    }
  /** The newest version of the keyring; older ones are no longer accepted. */
  | {
      readonly type: 'KeyringRecorded';
      readonly data: {
        readonly installation_id: string;
        readonly version: number;
        /** SHA-256 of the wrapped keyring, lower-case hex. */
        readonly digest: string;
      };
    };

export type ServiceKeyEvent = Extract<ServiceEvent, { readonly data: { readonly signing_private: SealedSecret } }>;

export const serviceEvents: EventSchemas<ServiceEvent> = {
  ServiceIdentityCreated: {},
  TokenSigningKeyReplaced: {},
  KeyringRecorded: {},
};

/** The resource type of audit entries about the installation. */
export const serviceType = 'service';

/** A recorded event as one of `svc-service`. */
export const serviceEvent = (event: RecordedEvent): ServiceEvent => eventOf(streams.service, event);

/** How the audit shows an event; null for the first start, which is no user's command. */
export function auditOfService({ type, data }: ServiceEvent): EventAudit | null {
  switch (type) {
    case 'ServiceIdentityCreated':
      return null;
    case 'TokenSigningKeyReplaced':
      return replaced('token_signing_key');
    case 'KeyringRecorded':
      return data.version === 1 ? null : replaced('keyring');
    default:
      return unreachable(type);
  }
}

const replaced = (path: string): EventAudit =>
  eventAudit('update', [{ path, before: masked, after: masked }], 'keys are not taken back');

export interface KeyringWrapped {
  readonly type: 'KeyringWrapped';
  readonly data: {
    readonly installation_id: string;
    readonly version: number;
    readonly master_key_id: string;
    readonly nonce: string;
    readonly ct: string;
  };
}

export const keyringEvents: EventSchemas<KeyringWrapped> = { KeyringWrapped: {} };
