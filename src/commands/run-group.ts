/**
 * Carries one group of waiting commands from their decision to their answers: decides them on the fold, appends their
 * events together, and decides them again when another instance has written first. How the append finds out its outcome
 * is in `append-group.ts`. Implements `docs/contract/domain.md#commands-and-events`.
 *
 * An answer that writes nothing (a refusal, a no-change, a repeat) holds only if no other instance has written. Beside
 * a command that writes, the append's expected revision proves that; alone, the end of the log is read first.
 */
import { ServiceError, unreachable } from '../kernel/errors.js';
import type { ProposedEvent } from '../kernel/event.js';
import type { GroupOutcome } from './append-group.js';
import type { Decided, DecidingFold } from './deciding-fold.js';
import { asServiceError } from './deciding-fold.js';
import { tuning } from './tuning.js';
import type { Answer, WaitingCallers } from './waiting-callers.js';

export interface GroupParts<State, Command> {
  readonly fold: DecidingFold<State, Command>;
  readonly callers: WaitingCallers<State, Command>;
  /** Commands that were appended and whose callers still wait until they are shown. */
  showing(): number;
  /** Appends events behind the expected revision. */
  append(expected: number, events: readonly ProposedEvent[]): Promise<GroupOutcome>;
}

/** Runs one group and answers each of its callers. Never rejects. */
export async function runGroup<State, Command>(parts: GroupParts<State, Command>): Promise<void> {
  try {
    for (let attempt = 0; (await tryGroup(parts, attempt)) === 'again'; attempt += 1);
  } catch (error) {
    // The log cannot be read, or holds an event that this release does not know: no caller is left without an answer.
    parts.fold.rollback();
    parts.callers.refuseAll(asServiceError(error));
  }
}

async function tryGroup<State, Command>(
  { fold, callers, showing, append }: GroupParts<State, Command>,
  attempt: number,
): Promise<'settled' | 'again'> {
  const expected = fold.revision();
  const group = fold.decideGroup(callers.all(), groupSize(callers.count + showing()));
  callers.beginGroup(group.length);
  const members = callers.all().slice(0, group.length);
  const settle = (answerOf: (decided: Decided) => Answer): 'settled' => {
    callers.endGroup();
    for (const [index, decided] of group.entries()) members[index]?.answer(answerOf(decided));
    return 'settled';
  };
  const fail = (message: string): 'settled' => {
    fold.rollback();
    const error = new ServiceError('unavailable', message);
    return settle(() => ({ kind: 'refused', error }));
  };

  const events = group.flatMap((decided) => (decided.kind === 'write' ? decided.proposal.events : []));
  const outcome = events.length > 0 ? await append(expected, events) : await nothingToAppend(fold);
  switch (outcome.kind) {
    case 'appended':
      fold.commit(outcome.position);
      return settle((decided) => finalAnswer(decided, expected + events.length, fold.newestPosition()));
    case 'conflict':
      if (attempt >= tuning.gatewayAttempts) return fail('the log moved on at every try; nothing was written');
      fold.rollback();
      await fold.catchUp();
      return 'again';
    case 'unavailable':
      return fail('the event store is out of reach; nothing was written');
    case 'unknown':
      return fail('the event store did not say whether the change was written; it may have been');
    default:
      return unreachable(outcome);
  }
}

/**
 * Half of the commands under way: while one half is flushed, the other is checked, decided, projected and answered. Callers
 * that wait for each other's flush come back together, and would all be one group from then on, with nothing to do meanwhile.
 * Few commands are one group: two flushes would cost them more than the wait.
 */
const groupSize = (underWay: number): number => Math.max(tuning.undividedGroup, Math.ceil(underWay / 2));

/** A group without events stands like an empty append would: only at the end of the log. */
async function nothingToAppend(
  fold: Pick<DecidingFold<unknown, unknown>, 'isBehind' | 'newestPosition'>,
): Promise<GroupOutcome> {
  return (await fold.isBehind()) ? { kind: 'conflict' } : { kind: 'appended', position: fold.newestPosition() };
}

function finalAnswer(decided: Decided, groupRevision: number, position: number): Answer {
  if (decided.kind === 'answer') return decided.answer;
  const { proposal, recorded, result } = decided;
  return { kind: 'written', commandId: proposal.commandId, events: recorded.events, groupRevision, position, result };
}
