/**
 * How far the read models are behind the log, in positions and in seconds. Looks once a second, so a lag of less than that
 * is not seen here; how long each command waited for the read models is measured where it waits
 * (`src/app/command-metrics.ts`). No clock of another machine is used: an event counts from when it was known here.
 */
import { startLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import type { MetricSource } from './metrics.js';

const lookEveryMs = 1_000;
/** When there are more, every second one is given up: the oldest one, which decides, stays. */
const samplesMax = 256;

interface ProjectionLag {
  metrics(): readonly MetricSource[];
  close(): Promise<void>;
}

interface ProjectionLagOptions {
  /** Position of the newest event that this instance knows of. */
  newest(): number;
  /** Position that every read model holds. */
  held(): number;
  readonly clock: Clock;
  /** How often it looks, in milliseconds. */
  readonly everyMs?: number;
}

export function watchProjectionLag(options: ProjectionLagOptions): ProjectionLag {
  const { newest, held, clock, everyMs = lookEveryMs } = options;
  /** Positions that the read models do not hold yet and when each was the newest, the oldest first. */
  let samples: { readonly position: number; readonly at: number }[] = [];

  const look = (): void => {
    const [position, reached] = [newest(), held()];
    samples = samples.filter((sample) => sample.position > reached);
    if (position > Math.max(reached, samples.at(-1)?.position ?? 0)) samples.push({ position, at: clock.monotonic() });
    if (samples.length > samplesMax) samples = samples.filter((_, place) => place % 2 === 0);
  };
  const seconds = (): number => {
    look();
    const oldest = samples[0];
    return oldest === undefined ? 0 : (clock.monotonic() - oldest.at) / 1000;
  };

  const loop = startLoop(
    everyMs,
    async () => look(),
    () => undefined,
  );
  return {
    metrics: () => [
      {
        type: 'gauge',
        name: 'svc_projection_lag_positions',
        help: 'By how many log positions the read models are behind the newest event that this instance knows of.',
        read: () => Math.max(0, newest() - held()),
      },
      {
        type: 'gauge',
        name: 'svc_projection_lag_seconds',
        help: 'For how long an event that this instance knows of has not been in the read models.',
        read: seconds,
      },
    ],
    close: () => loop.close(),
  };
}
