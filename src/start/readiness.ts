/** What the followers of the log say of this instance: may it write, should it get traffic. See `followers.ts`. */
import type { AccountsView } from '../accounts/view.js';
import { isMismatch, mismatchText } from '../projections/fleet/compiler-mismatch.js';
import { chainBreakText } from '../domain/log-chain/links.js';
import type { LogChain } from '../log-chain/log-chain.js';
import type { CommittedFleet } from '../projections/fleet/committed-fleet.js';
import type { Projections } from '../projections/port.js';

type CommittedPart = Pick<CommittedFleet, 'state'>;
type ProjectionsPart = Pick<Projections, 'status'>;
type AccountsPart = Pick<AccountsView, 'failure'>;
type ChainPart = Pick<LogChain, 'broken'>;

/** Why nothing may be written, or undefined. */
export function readOnlyReason(
  committed: CommittedPart,
  projections: ProjectionsPart,
  accounts: AccountsPart,
  logChain: ChainPart,
): string | undefined {
  const reason = brokenLog(committed, logChain);
  if (reason !== undefined) return `this instance is read-only: ${reason}`;
  const failure = accounts.failure();
  // Accounts that are out of date would go on accepting tokens that a password change has ended.
  if (failure !== undefined) return `this instance is read-only: ${failure}`;
  const state = committed.state();
  const unknown = state.kind === 'unknown_event' ? state.eventType : projections.status().unknownEvent;
  return unknown === null
    ? undefined
    : `this instance is read-only: it does not know the event ${unknown}, which a newer release wrote`;
}

/** Where the log was tampered with or damaged, or undefined. */
function brokenLog(committed: CommittedPart, logChain: ChainPart): string | undefined {
  const at = logChain.broken();
  if (at !== undefined) return chainBreakText(at);
  const state = committed.state();
  return state.kind === 'broken_log' ? state.reason : undefined;
}

/** Why this instance should get no traffic, the stores aside. */
export function notReady(
  committed: CommittedPart,
  projections: ProjectionsPart,
  accounts: AccountsPart,
  logChain: ChainPart,
): readonly string[] {
  const reasons: string[] = [];
  const state = committed.state();
  if (state.kind === 'cut_off') reasons.push('the committed fleet is cut off from the log');
  if (state.kind === 'catching_up') reasons.push('the committed fleet is catching up with the log');
  if (isMismatch(state)) reasons.push(mismatchText(state));
  const readOnly = readOnlyReason(committed, projections, accounts, logChain);
  if (readOnly !== undefined) reasons.push(readOnly);
  if (!projections.status().caughtUp) reasons.push('the projections are catching up with the log');
  return reasons;
}
