/**
 * Whether this instance may serve configuration: it must be near the end of the log, know every event, have found its
 * chain unbroken, and have the compiler version that the log is at. `../log-connection.ts` tells how near it is to the
 * log's end. Implements `docs/contract/domain.md#generation` and `docs/contract/domain.md#commands-and-events`.
 *
 * The compiler version in the log may rise and fall under a running instance. The instance serves only while it is its
 * own version, and never writes it: that is done once, at the start, so that a lowered version stays lowered.
 */
import type { Fleet } from '../../domain/fleet/fleet.js';
import type { Logger } from '../../kernel/logger.js';
import { isMismatch, mismatchText } from './compiler-mismatch.js';
import type { LogDistance } from '../log-connection.js';
import type { ServingState } from '../port.js';

export type StoppedState = Extract<ServingState, { readonly kind: 'unknown_event' | 'broken_log' }>;

export interface ServingStateTracker {
  current(): ServingState;
  /** Works the state out again, and logs and reports a change. */
  refresh(): void;
  /** The log cannot be folded any further: this is the state from the next refresh on, for good. */
  stop(at: StoppedState): void;
}

export interface ServingStateDeps {
  readonly logger: Logger;
  readonly ownVersion: number;
  fleet(): Fleet;
  distance(): LogDistance;
  onChange(state: ServingState): void;
}

export function createServingState(deps: ServingStateDeps): ServingStateTracker {
  const { logger, ownVersion } = deps;
  let stopped: StoppedState | undefined;
  /** The instance has been ready before, so the log was at this release's compiler version. */
  let wasReady = false;
  let state = compute();

  function compute(): ServingState {
    if (stopped !== undefined) return stopped;
    const distance = deps.distance();
    const logVersion = deps.fleet().singletons.service.value;
    if (logVersion > ownVersion) return { kind: 'older_compiler', logVersion, ownVersion };
    if (distance === 'cut_off' && logVersion === ownVersion) return { kind: 'cut_off' };
    if (distance === 'cut_off' || distance === 'behind') return { kind: 'catching_up' };
    if (logVersion === ownVersion) return { kind: 'ready' };
    // This release's compiler version is not in the log yet, or not any more. Its output would go out under generations
    // that belong to another compiler.
    return wasReady ? { kind: 'newer_compiler', logVersion, ownVersion } : { kind: 'catching_up' };
  }

  return {
    current: () => state,
    refresh() {
      const before = state;
      state = compute();
      wasReady ||= state.kind === 'ready';
      if (before.kind === state.kind) return;
      const change = { before: before.kind, now: state.kind, revision: deps.fleet().revision.value };
      if (isMismatch(state)) {
        logger.warn(
          { ...change, reason: mismatchText(state) },
          'delivery stopped: the log is at another compiler version',
        );
      } else {
        logger.info(change, 'delivery changed its state');
      }
      deps.onChange(state);
    },
    stop(at) {
      stopped = at;
    },
  };
}
