/**
 * Carries one group of waiting commands from their decision to their answers: decides them, appends their events together,
 * folds them, and decides them again when another instance has written first. How the append finds out its outcome is in
 * `append-group.ts`. Implements `docs/contract/domain.md#commands-and-events`.
 *
 * An answer that writes nothing (a refusal, a no-change, a repeat) holds only if no other instance has written. Beside
 * a command that writes, the append's expected revision proves that; alone, the end of the log is read first.
 */
import { ServiceError, unreachable } from '../kernel/errors.js';
import type { ProposedEvent, RecordedCommand } from '../kernel/event.js';
import type { DecidingState } from './aggregate.js';
import type { GroupOutcome } from './append-group.js';
import type { Decided } from './decide-group.js';
import { asServiceError } from './decide-group.js';
import type { Committed } from './port.js';
import { tuning } from './tuning.js';
import type { Answer, Call, WaitingCallers } from './waiting-callers.js';

export interface GroupParts<State extends DecidingState, Command> {
  readonly committed: Committed<State>;
  readonly callers: WaitingCallers<State, Command>;
  decide(calls: Iterable<Call<State, Command>>): readonly Decided[];
  /** Appends events behind the expected revision. */
  append(expected: number, events: readonly ProposedEvent[]): Promise<GroupOutcome>;
  /** True when the log holds events that are not folded. */
  isBehind(): Promise<boolean>;
}

/** Runs one group and answers each of its callers. Never rejects. */
export async function runGroup<State extends DecidingState, Command>(parts: GroupParts<State, Command>): Promise<void> {
  try {
    for (let attempt = 0; (await tryGroup(parts, attempt)) === 'again'; attempt += 1);
  } catch (error) {
    // The log cannot be read, or holds an event that this release does not know: no caller is left without an answer.
    parts.callers.refuseAll(asServiceError(error));
  }
}

async function tryGroup<State extends DecidingState, Command>(
  { committed, callers, decide, append, isBehind }: GroupParts<State, Command>,
  attempt: number,
): Promise<'settled' | 'again'> {
  const expected = committed.state().revision.value;
  const group = decide(callers.all());
  callers.beginGroup(group.length);
  const members = callers.all().slice(0, group.length);
  const settle = (answerOf: (decided: Decided) => Answer): 'settled' => {
    callers.endGroup();
    for (const [index, decided] of group.entries()) members[index]?.answer(answerOf(decided));
    return 'settled';
  };
  const fail = (message: string): 'settled' => {
    const error = new ServiceError('unavailable', message);
    return settle(() => ({ kind: 'refused', error }));
  };

  const writes = group.filter((decided) => decided.kind === 'write');
  const events = writes.flatMap(({ proposal }) => proposal.events);
  const outcome = events.length > 0 ? await append(expected, events) : await nothingToAppend(committed, isBehind);
  switch (outcome.kind) {
    case 'appended': {
      const position = Math.max(outcome.position, committed.state().position.value);
      if (writes.length > 0) committed.apply(writes.map(({ recorded }) => at(recorded, position)));
      return settle((decided) => finalAnswer(decided, position));
    }
    case 'conflict':
      if (attempt >= tuning.gatewayAttempts) return fail('the log moved on at every try; nothing was written');
      await committed.catchUp();
      return 'again';
    case 'unavailable':
      return fail('the event store is out of reach; nothing was written');
    case 'unknown':
      return fail('the event store did not say whether the change was written; it may have been');
    default:
      return unreachable(outcome);
  }
}

/** A command as it stands in the log, at the position of its group's last event. */
function at({ stream, events: [first, ...rest] }: RecordedCommand, position: number): RecordedCommand {
  return { stream, events: [{ ...first, position }, ...rest.map((event) => ({ ...event, position }))] };
}

/** A group without events stands like an empty append would: only at the end of the log. */
async function nothingToAppend(
  committed: Committed<DecidingState>,
  isBehind: () => Promise<boolean>,
): Promise<GroupOutcome> {
  return (await isBehind()) ? { kind: 'conflict' } : { kind: 'appended', position: committed.state().position.value };
}

function finalAnswer(decided: Decided, position: number): Answer {
  if (decided.kind === 'answer') return decided.answer;
  const { proposal, recorded, result } = decided;
  return { kind: 'written', commandId: proposal.commandId, events: recorded.events, position, result };
}
