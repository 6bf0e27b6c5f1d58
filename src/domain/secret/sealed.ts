/** A secret as it lies in an event: sealed under a data key (`docs/contract/domain.md`, "Secrets in events are sealed"). */
export interface SealedSecret {
  readonly alg: 'xc20p';
  readonly key_id: string;
  readonly nonce: string;
  readonly ct: string;
}
