/** Runs long work on committed state in pieces, between which everything else continues. */
import type { Cell } from '../domain/aggregate/containers.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { yieldToEventLoop } from '../kernel/background.js';
import { runSync } from '../kernel/pieces.js';
import type { Gateway } from './port.js';
import { tuning } from './tuning.js';

interface AtRevision {
  readonly revision: Cell<number>;
}

/** The result of pieces that all saw the same state. They start again when it changes, and finally run without a pause. */
export async function inPieces<S extends AtRevision, R>(
  committed: () => S,
  pieces: (state: S) => Generator<void, R>,
): Promise<R> {
  const found = await tried(committed, pieces);
  return found === undefined ? runSync(pieces(committed())) : found.value;
}

/** Like `inPieces`, on the fleet. Before they run without a pause, they try while this instance's commands wait. */
export async function inPiecesAlone<R>(
  { fleet, gateway }: { readonly fleet: () => Fleet; readonly gateway: Pick<Gateway<Fleet, never>, 'alone'> },
  pieces: (fleet: Fleet) => Generator<void, R>,
): Promise<R> {
  let found = await tried(fleet, pieces);
  if (found === undefined) {
    await gateway.alone(async () => {
      const until = performance.now() + tuning.fileAloneMs;
      while (found === undefined && performance.now() < until) found = await onOneState(fleet, pieces, until);
    });
  }
  // Other instances keep writing.
  return found === undefined ? runSync(pieces(fleet())) : found.value;
}

async function tried<S extends AtRevision, R>(
  committed: () => S,
  pieces: (state: S) => Generator<void, R>,
): Promise<{ readonly value: R } | undefined> {
  let found: { readonly value: R } | undefined;
  for (let attempt = 1; attempt < tuning.fileAttempts && found === undefined; attempt += 1) {
    found = await onOneState(committed, pieces);
  }
  return found;
}

/** Undefined when the state changes, or time is up. */
async function onOneState<S extends AtRevision, R>(
  committed: () => S,
  pieces: (state: S) => Generator<void, R>,
  until = Number.POSITIVE_INFINITY,
): Promise<{ readonly value: R } | undefined> {
  const state = committed();
  const revision = state.revision.value;
  const running = pieces(state);
  for (;;) {
    const step = running.next();
    if (step.done === true) return { value: step.value };
    await yieldToEventLoop();
    if (committed() === state && state.revision.value === revision && performance.now() <= until) continue;
    // Lets the generator release what it holds.
    running.return(undefined as never);
    return undefined;
  }
}
