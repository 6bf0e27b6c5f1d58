/** Plays random histories on a fleet, for tests that check every step. */
import { resourceOf, type FleetCommand } from '../../src/domain/fleet/resources.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { undoOf } from '../../src/domain/revert/history.js';
import { unreachable } from '../../src/kernel/errors.js';
import type { RecordedCommand } from '../../src/kernel/event.js';
import { dealer } from './dealer.js';
import { perform, type Performed, type Recording } from './fleet.js';
import { commandOf, type Move } from './fleet-histories.js';

export interface Step {
  readonly command: FleetCommand;
  readonly performed: Performed;
}

/**
 * Plays a history on a fleet. Calls `before` with each command before it is performed, and `after` with its outcome.
 */
export function play(
  moves: readonly Move[],
  watch: {
    readonly fleet?: Fleet;
    readonly recording?: (step: number) => Recording;
    before?(fleet: Fleet, command: FleetCommand): void;
    after?(fleet: Fleet, step: Step): void;
  } = {},
): { readonly fleet: Fleet; readonly steps: readonly Step[] } {
  const fleet = watch.fleet ?? emptyFleet();
  const steps: Step[] = [];
  for (const [index, move] of moves.entries()) {
    const command = move.kind === 'undo' ? undoing(fleet, logOf(steps), move) : commandOf(fleet, move, index);
    if (command === undefined) continue;
    watch.before?.(fleet, command);
    const step = { command, performed: perform(fleet, command, watch.recording?.(index)) };
    steps.push(step);
    watch.after?.(fleet, step);
  }
  return { fleet, steps };
}

/** The inverse of an event of the log, as a revert would give it. */
function undoing(fleet: Fleet, log: readonly RecordedCommand[], { seed }: Move): FleetCommand | undefined {
  const deal = dealer(seed);
  const undos = log.flatMap(({ events }) => undoOf(events[0]) ?? []);
  const deletes = undos.filter(({ kind }) => kind === 'restore');
  const among = deletes.length > 0 && deal.chance(50) ? deletes : undos;
  const undo = among.length === 0 ? undefined : deal.of(among);
  switch (undo?.kind) {
    case undefined:
      return undefined;
    case 'delete':
      return undo.command as FleetCommand;
    case 'restore': {
      const { id } = undo.command({ created_at: '', version: 0 }) as { readonly id?: string };
      const version = log.flatMap(({ events }) => events).filter((event) => resourceOf(event).id === id).length;
      return undo.command({ created_at: new Date(0).toISOString(), version }) as FleetCommand;
    }
    case 'change':
      return undo.now(fleet) === undefined ? undefined : (undo.command(fleet) as FleetCommand);
    default:
      return unreachable(undo);
  }
}

/** The written commands of a history, as recorded. */
export function logOf(steps: readonly Step[]): readonly RecordedCommand[] {
  return steps.flatMap(({ performed }) => (performed.kind === 'written' ? [performed.command] : []));
}
