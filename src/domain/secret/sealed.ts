/**
 * A secret as events hold it: sealed. `src/security/` seals. Implements `docs/contract/domain.md#commands-and-events`.
 */
export interface SealedSecret {
  readonly alg: 'xc20p';
  readonly key_id: string;
  readonly nonce: string;
  readonly ct: string;
}
