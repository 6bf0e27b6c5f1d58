/**
 * A secret as events hold it: sealed. Not the sealing itself: that is in `src/security/`.
 * Implements `docs/contract/domain.md#commands-and-events`.
 */
export interface SealedSecret {
  readonly alg: 'xc20p';
  readonly key_id: string;
  readonly nonce: string;
  readonly ct: string;
}
