/** The state of the projections, and the listeners to its changes. A new position alone is not a change. */
import { errorText } from '../../kernel/errors.js';
import { jsonEqual } from '../../kernel/json.js';
import { createListeners } from '../../kernel/listeners.js';
import type { Logger } from '../../kernel/logger.js';
import type { ParkedEntity, ProjectionStatus } from '../port.js';

export interface StatusBoard {
  current(): ProjectionStatus;
  set(change: Partial<Omit<ProjectionStatus, 'position'>>): void;
  onChange(listener: (status: ProjectionStatus) => void): () => void;
}

export function createStatusBoard(
  position: () => number,
  parked: () => readonly ParkedEntity[],
  logger: Logger,
): StatusBoard {
  let state: Omit<ProjectionStatus, 'position' | 'parked'> = { caughtUp: false, unknownEvent: null, lastError: null };
  let lastReported: unknown;
  const listeners = createListeners<ProjectionStatus>((error) =>
    logger.error({ error: errorText(error) }, 'a listener to the state of the projections failed'),
  );
  // Asked before every command.
  const current = (): ProjectionStatus => {
    const { caughtUp, unknownEvent, lastError } = state;
    return { caughtUp, unknownEvent, lastError, position: position(), parked: parked() };
  };
  return {
    current,
    set(change) {
      state = { ...state, ...change };
      const summary = { ...state, parked: parked().length };
      if (jsonEqual(lastReported, summary)) return;
      lastReported = summary;
      listeners.tell(current());
    },
    onChange: listeners.add,
  };
}
