/**
 * What the parts that follow the log say together: may this instance write, should it get traffic. Whether the stores
 * answer is telemetry's. Part of the wiring, see `app.ts`.
 */
import type { AccountsView } from '../accounts/view.js';
import { isMismatch, mismatchText } from '../delivery/compiler-mismatch.js';
import type { Delivery } from '../delivery/port.js';
import type { Projections } from '../projections/port.js';

type State = Pick<Delivery, 'state'>;

/** Why nothing may be written, or undefined. */
export function readOnlyReason(delivery: State, projections: Projections, view: AccountsView): string | undefined {
  const state = delivery.state();
  const unknown = state.kind === 'unknown_event' ? state.eventType : projections.status().unknownEvent;
  const accounts = view.failure();
  // Without the accounts, tokens that a password change ended would live on unnoticed.
  if (accounts !== undefined) return `this instance is read-only: ${accounts}`;
  return unknown === null
    ? undefined
    : `this instance is read-only: it does not know the event ${unknown}, which a newer release wrote`;
}

/** Why this instance should get no traffic, the stores aside. */
export function notReady(delivery: State, projections: Projections, view: AccountsView): readonly string[] {
  const reasons: string[] = [];
  const state = delivery.state();
  if (state.kind === 'cut_off') reasons.push('the committed fold is cut off from the log');
  if (state.kind === 'catching_up') reasons.push('the committed fold is catching up with the log');
  if (isMismatch(state)) reasons.push(mismatchText(state));
  const readOnly = readOnlyReason(delivery, projections, view);
  if (readOnly !== undefined) reasons.push(readOnly);
  if (!projections.status().caughtUp) reasons.push('the projections are catching up with the log');
  return reasons;
}
