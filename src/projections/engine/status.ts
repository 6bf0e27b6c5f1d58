/** The state of the projections as others see it, and who is told when it changes. Not the position: that is asked. */
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
  let told: unknown;
  const listeners = createListeners<ProjectionStatus>((error) =>
    logger.error({ error }, 'a listener to the state of the projections failed'),
  );
  const current = (): ProjectionStatus => ({ ...state, position: position(), parked: parked() });
  return {
    current,
    set(change) {
      state = { ...state, ...change };
      const summary = { ...state, parked: parked().length };
      if (jsonEqual(told, summary)) return;
      told = summary;
      listeners.tell(current());
    },
    onChange: listeners.add,
  };
}
