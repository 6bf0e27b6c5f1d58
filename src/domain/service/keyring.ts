/**
 * The keyring in the log: the one event of `svc-keyring`, which is replaced by each new version. Only the master key
 * opens its keys (`src/security/keyring.ts`). Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet`.
 */
import type { EventSchemas } from '../resource/declaration.js';

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
