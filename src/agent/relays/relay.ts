/** The listeners of both transports as the runtime sees them, and their dependencies. Types only. */
import type { Clock } from '../../kernel/clock.js';
import type { Logger } from '../../kernel/logger.js';
import type { SampledLog } from '../../kernel/sampled-log.js';
import type { ListenerPlan } from '../plan/plan.js';
import type { Links } from './links.js';
import type { Meter } from './meters.js';
import type { Pins } from './pins.js';
import type { RealityTargets } from './reality-targets.js';
import type { Upstreams } from './upstreams.js';

export interface RelayDependencies {
  readonly upstreams: Upstreams;
  readonly links: Links;
  readonly pins: Pins;
  readonly targets: RealityTargets;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Next hops that were refused, at a bounded rate. */
  readonly refusals: SampledLog;
  /** The node's totals. */
  readonly totals: Meter;
}

export interface RelayListener {
  readonly meter: Meter;
  readonly state: 'running' | 'failed';
  /** Serves new sessions as a plan for this listener demands. Until then, TCP connections wait and datagrams are dropped. */
  serve(plan: ListenerPlan): void;
  /** Releases address and port, so that an overlapping listener can open. Live TCP connections stay. */
  suspend(): void;
  /** Takes address and port back. Rejects if they are in use by now. */
  resume(): Promise<void>;
  /** Releases both for good; live TCP connections may stay for `drainMs`. Resolves when all are closed. */
  close(drainMs: number): Promise<void>;
}
