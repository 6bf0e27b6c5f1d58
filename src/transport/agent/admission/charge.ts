/** A token that an attempt has taken from a budget, and gives back if it was no failure. */
export interface Charge {
  /** Only the first call counts. */
  refund(): void;
}

export function chargeOf(give: () => void): Charge {
  let refunded = false;
  return {
    refund() {
      if (refunded) return;
      refunded = true;
      give();
    },
  };
}
