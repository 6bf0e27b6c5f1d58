/** What a snapshot asks of the data plane. Types only: `target.ts` makes these, `runtime.ts` carries them out. */
import type { RuntimeRoute } from '../gen/svc/control/v1/heartbeat.js';
import type { RuleOrigin } from '../gen/svc/control/v1/transport.js';
import type { HostPort } from '../kernel/host-port.js';

export type Transport = 'tcp' | 'udp';

export type NextHop =
  { readonly kind: 'cluster'; readonly name: string } | { readonly kind: 'endpoint'; readonly endpoint: HostPort };

export interface Cluster {
  readonly name: string;
  readonly endpoints: readonly HostPort[];
  /** False: new connections are refused, established ones stay. */
  readonly enabled: boolean;
}

/** What a listener does with a new connection. */
export interface RelayRoute {
  readonly origin: RuleOrigin;
  readonly next: NextHop;
}

export interface ListenerPlan {
  readonly key: string;
  readonly transport: Transport;
  readonly addr: string;
  readonly port: number;
  /** Origin of the listener's first rule, for errors. */
  readonly origin: RuleOrigin;
  /** Undefined: no socket is opened, and the listener is reported as `unsupported`. */
  readonly relay: RelayRoute | undefined;
  /** The routes that are served: none if the listener is unsupported. */
  readonly routes: readonly RuntimeRoute[];
}

export interface Target {
  readonly listeners: ReadonlyMap<string, ListenerPlan>;
  readonly clusters: ReadonlyMap<string, Cluster>;
  /** What this agent leaves out, for its log. */
  readonly unsupported: readonly string[];
}
