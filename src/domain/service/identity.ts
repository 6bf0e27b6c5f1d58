/**
 * The keys of an installation. The first event of `svc-service` is written at the first start, by an append that expects no
 * stream, so that of several instances only one creates it; later ones replace the key that signs tokens and record
 * versions of the keyring, which `svc-keyring` holds as its one event. Only the master key opens it
 * (`src/security/keyring.ts`). Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet`.
 */
import { unreachable } from '../../kernel/errors.js';
import type { RecordedEvent } from '../../kernel/event.js';
import { eventOf, streams } from '../../kernel/event.js';
import type { EventAudit } from '../resource/audit-change.js';
import { eventAudit, masked } from '../resource/audit-change.js';
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
  /** Every token that the earlier key signed has ended. */
  | {
      readonly type: 'TokenSigningKeyReplaced';
      readonly data: {
        readonly installation_id: string;
        readonly signing_public: string;
        readonly signing_private: SealedSecret;
      };
    }
  /** The newest version of the keyring: an older one is no longer accepted. */
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
  ServiceIdentityCreated: { schemaVersion: 1 },
  TokenSigningKeyReplaced: { schemaVersion: 1 },
  KeyringRecorded: { schemaVersion: 1 },
};

/** The resource type of audit entries about the installation. */
export const serviceType = 'service';

/** A recorded event as one of `svc-service`. */
export const serviceEvent = (event: RecordedEvent): ServiceEvent => eventOf(streams.service, event);

/** How the audit shows an event. The first start is nobody's command, so it has no entry. */
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

export const keyringEvents: EventSchemas<KeyringWrapped> = { KeyringWrapped: { schemaVersion: 1 } };
