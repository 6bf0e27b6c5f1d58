/**
 * What a store knows of the time, so that an instance whose clock is wrong can notice it. Both ports have it
 * (`event-store.ts`, `read-store.ts`). Not what follows from a difference: that is `src/operations/store-clocks.ts`.
 * Implements `docs/contract/domain.md#commands-and-events`.
 */
export type StoreTime =
  /** The store has a clock of its own, which shows this time now. */
  | { readonly kind: 'clock'; readonly at: number }
  /** The store lives by this instance's clock, and has recorded something at this time: it cannot be earlier. */
  | { readonly kind: 'not_before'; readonly at: number };
