/** What a listener of either transport offers to the runtime, and what it needs of it. */
import type { Clock } from '../kernel/clock.js';
import type { Logger } from '../kernel/logger.js';
import type { Meter } from './counters.js';
import type { Links } from './links.js';
import type { RelayRoute } from './plan.js';
import type { Upstreams } from './upstreams.js';

export interface RelayDependencies {
  readonly upstreams: Upstreams;
  readonly links: Links;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The node's totals. */
  readonly totals: Meter;
}

export interface RelayListener {
  readonly meter: Meter;
  readonly state: 'running' | 'failed';
  /** The next hop of new sessions. Until it is first set, none is relayed: TCP connections wait. */
  route(route: RelayRoute): void;
  /** Gives address and port up while live TCP connections go on, so that an overlapping listener can be opened. */
  suspend(): void;
  /** Takes them again. Rejects when somebody else has them now. */
  resume(): Promise<void>;
  /** Gives them up for good; live TCP connections may go on for `drainMs`. Resolves when all are gone. */
  close(drainMs: number): Promise<void>;
}
