/** The listener of either transport as the runtime sees it, and its dependencies. Types only. */
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
  /** Sets the next hop of new sessions. Until it is first set, TCP connections wait and datagrams are dropped. */
  route(route: RelayRoute): void;
  /** Releases address and port, so that an overlapping listener can be opened. Live TCP connections stay. */
  suspend(): void;
  /** Takes address and port again. Rejects if they are in use by now. */
  resume(): Promise<void>;
  /** Releases them for good; live TCP connections may stay for `drainMs`. Resolves when all are gone. */
  close(drainMs: number): Promise<void>;
}
