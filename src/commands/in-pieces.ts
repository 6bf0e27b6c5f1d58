/** Long work on the committed fleet, in pieces between which everything else goes on. */
import { withoutPause } from '../domain/fleet-file/together.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { yieldToEventLoop } from '../kernel/background.js';
import type { Gateway } from './port.js';
import { tuning } from './tuning.js';

interface CommittedAlone {
  /** The committed fleet. */
  readonly fleet: () => Fleet;
  readonly gateway: Pick<Gateway<Fleet, never>, 'alone'>;
}

/**
 * The result of pieces that saw one fleet, which stayed the same meanwhile: they begin anew when it changes, then while this
 * instance's commands wait, and at last, where other instances go on writing, run without a pause.
 */
export async function inPieces<R>(
  { fleet, gateway }: CommittedAlone,
  pieces: (fleet: Fleet) => Generator<void, R>,
): Promise<R> {
  let found: { readonly value: R } | undefined;
  for (let attempt = 1; attempt < tuning.fileAttempts && found === undefined; attempt += 1) {
    found = await onOneFleet(fleet, pieces);
  }
  if (found === undefined) {
    await gateway.alone(async () => {
      const until = performance.now() + tuning.fileAloneMs;
      while (found === undefined && performance.now() < until) found = await onOneFleet(fleet, pieces, until);
    });
  }
  return found === undefined ? withoutPause(pieces(fleet())) : found.value;
}

/** Undefined when the fleet changes, or time is up. */
async function onOneFleet<R>(
  committed: () => Fleet,
  pieces: (fleet: Fleet) => Generator<void, R>,
  until = Number.POSITIVE_INFINITY,
): Promise<{ readonly value: R } | undefined> {
  const fleet = committed();
  const revision = fleet.revision.value;
  const running = pieces(fleet);
  for (;;) {
    const step = running.next();
    if (step.done === true) return { value: step.value };
    await yieldToEventLoop();
    if (committed() !== fleet || fleet.revision.value !== revision || performance.now() > until) return undefined;
  }
}
