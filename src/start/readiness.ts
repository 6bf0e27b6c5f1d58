/** What the followers of the log say of this instance: may it write, should it get traffic. See `followers.ts`. */
import type { AccountsView } from '../accounts/view.js';
import { isMismatch, mismatchText } from '../delivery/compiler-mismatch.js';
import type { Delivery } from '../delivery/port.js';
import { chainBreakText } from '../domain/log-chain/links.js';
import type { LogChain } from '../log-chain/log-chain.js';
import type { Projections } from '../projections/port.js';

type DeliveryPart = Pick<Delivery, 'state'>;
type ProjectionsPart = Pick<Projections, 'status'>;
type AccountsPart = Pick<AccountsView, 'failure'>;
type ChainPart = Pick<LogChain, 'broken'>;

/** Why nothing may be written, or undefined. */
export function readOnlyReason(
  delivery: DeliveryPart,
  projections: ProjectionsPart,
  accounts: AccountsPart,
  logChain: ChainPart,
): string | undefined {
  const reason = brokenLog(delivery, logChain);
  if (reason !== undefined) return `this instance is read-only: ${reason}`;
  const failure = accounts.failure();
  // Accounts that are out of date would go on accepting tokens that a password change has ended.
  if (failure !== undefined) return `this instance is read-only: ${failure}`;
  const state = delivery.state();
  const unknown = state.kind === 'unknown_event' ? state.eventType : projections.status().unknownEvent;
  return unknown === null
    ? undefined
    : `this instance is read-only: it does not know the event ${unknown}, which a newer release wrote`;
}

/** Where the log was tampered with or damaged, or undefined. */
function brokenLog(delivery: DeliveryPart, logChain: ChainPart): string | undefined {
  const at = logChain.broken();
  if (at !== undefined) return chainBreakText(at);
  const state = delivery.state();
  return state.kind === 'broken_log' ? state.reason : undefined;
}

/** Why this instance should get no traffic, the stores aside. */
export function notReady(
  delivery: DeliveryPart,
  projections: ProjectionsPart,
  accounts: AccountsPart,
  logChain: ChainPart,
): readonly string[] {
  const reasons: string[] = [];
  const state = delivery.state();
  if (state.kind === 'cut_off') reasons.push('the committed fold is cut off from the log');
  if (state.kind === 'catching_up') reasons.push('the committed fold is catching up with the log');
  if (isMismatch(state)) reasons.push(mismatchText(state));
  const readOnly = readOnlyReason(delivery, projections, accounts, logChain);
  if (readOnly !== undefined) reasons.push(readOnly);
  if (!projections.status().caughtUp) reasons.push('the projections are catching up with the log');
  return reasons;
}
