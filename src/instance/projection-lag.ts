/**
 * How far the read models are behind the log, in positions and in seconds. Samples once a second, so a shorter lag is
 * not seen here; `src/app/command-metrics.ts` measures how long each command waited for the read models. Uses no other
 * machine's clock: an event counts from when this instance knew of it.
 */
import { startLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { gauge, type MetricSource } from './metrics.js';

const lookEveryMs = 1_000;
/** When there are more, every second one is dropped; the oldest, which decides, stays. */
const samplesMax = 256;

interface ProjectionLagOptions {
  /** Position of the newest event that this instance knows of. */
  newest(): number;
  /** Position that every read model has reached. */
  held(): number;
  readonly clock: Clock;
  /** Sampling interval in milliseconds. */
  readonly everyMs?: number;
}

export function watchProjectionLag(options: ProjectionLagOptions) {
  const { newest, held, clock, everyMs = lookEveryMs } = options;
  /** Positions that the read models have not reached yet, and when each was the newest; oldest first. */
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
    metrics: (): readonly MetricSource[] => [
      gauge(
        'svc_projection_lag_positions',
        'Log positions by which the read models are behind the newest event that this instance knows of.',
        () => Math.max(0, newest() - held()),
      ),
      gauge(
        'svc_projection_lag_seconds',
        'How long the oldest event that is not in the read models yet has been known to this instance.',
        seconds,
      ),
    ],
    close: () => loop.close(),
  };
}
