/** What a snapshot asks of the data plane, as types: made by `target.ts`, carried out by `runtime.ts`. */
import type { RuntimeRoute } from '../gen/svc/control/v1/heartbeat.js';
import type { RuleOrigin } from '../gen/svc/control/v1/transport.js';
import type { HostPort } from '../kernel/host-port.js';

export type Transport = 'tcp' | 'udp';

export type NextHop =
  { readonly kind: 'cluster'; readonly name: string } | { readonly kind: 'endpoint'; readonly endpoint: HostPort };

export interface Cluster {
  readonly name: string;
  readonly endpoints: readonly HostPort[];
  /** false: new connections are refused, established ones go on. */
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
  /** Of its first rule, for errors. */
  readonly origin: RuleOrigin;
  /** undefined: no socket is opened, and the table says `unsupported`. */
  readonly relay: RelayRoute | undefined;
  /** Routes that are really served: none while unsupported. */
  readonly routes: readonly RuntimeRoute[];
}

export interface Target {
  readonly listeners: ReadonlyMap<string, ListenerPlan>;
  readonly clusters: ReadonlyMap<string, Cluster>;
  /** Sentences for the log on what this agent leaves out. */
  readonly unsupported: readonly string[];
}
