/** What a snapshot demands of the data plane, as data: made by `target.ts`, carried out by `../runtime.ts`. */
import type { SecureContext } from 'node:tls';
import type { X25519KeyPair } from '../../kernel/crypto/crypto.js';
import type { ConfigApplyError } from '../../gen/svc/control/v1/config.js';
import type { RuntimeRoute } from '../../gen/svc/control/v1/heartbeat.js';
import type { RuleOrigin } from '../../gen/svc/control/v1/transport.js';
import { unreachable } from '../../kernel/errors.js';
import type { HostPort } from '../../kernel/host-port.js';
import type { RealityServer } from '../../transport/listener/reality/settings.js';
import type { RealityAccess } from '../../channel/reality/endpoint.js';
import type { HttpRoutes, NameTable } from './matches.js';

export type Transport = 'tcp' | 'udp';

export type NextHop =
  { readonly kind: 'cluster'; readonly name: string } | { readonly kind: 'endpoint'; readonly endpoint: HostPort };

export interface Cluster {
  readonly name: string;
  readonly endpoints: readonly HostPort[];
  /** False: new connections are refused, established ones stay. */
  readonly enabled: boolean;
}

export interface UpstreamTls {
  /** The rule that dials; its pins may change while a connection is being made. */
  readonly ruleId: string;
  /** The SNI to send; empty: none. */
  readonly serverName: string;
  /** Base64; at least one. */
  readonly pins: ReadonlySet<string>;
}

/** How the next hop is dialled: with TLS or REALITY over TCP, or Noise (ENC) over UDP. */
export type DialSecurity =
  | { readonly kind: 'raw' }
  | ({ readonly kind: 'tls' } & UpstreamTls)
  | { readonly kind: 'reality'; readonly access: RealityAccess }
  /** X25519 public key of the hop. */
  | { readonly kind: 'noise'; readonly publicKey: Buffer };

/** The next hop of a new connection. */
export interface RelayRoute {
  readonly origin: RuleOrigin;
  readonly next: NextHop;
  readonly security: DialSecurity;
}

/** The listening side of a REALITY rule. */
export interface RealityHop extends RealityServer {
  /** The rule's id: this hop replaces an older hop of the same rule. */
  readonly ruleId: string;
  /** Changes whenever anything but the rule changes. */
  readonly id: string;
}

/** How to treat a client whose server name selects a rule. */
export type Accept =
  /** The ClientHello is passed on with everything else. */
  | { readonly kind: 'pass' }
  | { readonly kind: 'tls'; readonly context: SecureContext }
  | { readonly kind: 'reality'; readonly hop: RealityHop };

/** A rule selected by a server name. */
export interface NamedRule {
  readonly route: RelayRoute;
  readonly accept: Accept;
}

export interface RealityRule {
  readonly route: RelayRoute;
  readonly hop: RealityHop;
}

/** How a TCP listener serves connections without reading a server name. */
export type PlainService =
  | { readonly kind: 'relay'; readonly route: RelayRoute }
  /** Each request of a connection has its own route. */
  | { readonly kind: 'http'; readonly routes: HttpRoutes<RelayRoute> };

export type TcpService =
  | PlainService
  /** A lone REALITY rule: every client belongs to it, whatever it sends. */
  | { readonly kind: 'reality'; readonly rule: RealityRule }
  | {
      readonly kind: 'names';
      readonly names: NameTable<NamedRule>;
      /** Serves connections that select no rule by name; with REALITY, by its target. If undefined, they are closed. */
      readonly fallback: PlainService | { readonly kind: 'reality'; readonly rule: RealityRule } | undefined;
      /** All REALITY rules. */
      readonly hops: readonly RealityHop[];
      /** A saved policy puts RAW before TLS: the fallback does not wait long for a late ClientHello. */
      readonly rawFirst: boolean;
    };

/** An ENC rule of a UDP socket, selected by the key of a handshake. */
export interface EncRule {
  readonly keys: X25519KeyPair;
  readonly route: RelayRoute;
}

export interface UdpService {
  readonly enc: readonly EncRule[];
  /** Serves everything but ENC; if undefined, that is dropped. */
  readonly fallback: RelayRoute | undefined;
  /** A saved policy puts RAW before Noise: a datagram that only looks like a handshake belongs to RAW. */
  readonly rawFirst: boolean;
}

interface ListenerPlace {
  readonly key: string;
  readonly addr: string;
  readonly port: number;
  /** Origins of the listener's rules, for errors; at least one. */
  readonly origins: readonly RuleOrigin[];
  /** The routes that are served: none if the listener is unsupported. */
  readonly routes: readonly RuntimeRoute[];
}

/** Without a service, no socket is opened, and the listener is reported as `unsupported`. */
export type ListenerPlan = ListenerPlace &
  (
    | { readonly transport: 'tcp'; readonly service: TcpService | undefined }
    | { readonly transport: 'udp'; readonly service: UdpService | undefined }
  );

/** The REALITY hops of a listener. */
export function hopsOf({ service }: Pick<ListenerPlan, 'service'>): readonly RealityHop[] {
  if (service === undefined || !('kind' in service)) return [];
  switch (service.kind) {
    case 'names':
      return service.hops;
    case 'reality':
      return [service.rule.hop];
    case 'relay':
    case 'http':
      return [];
    default:
      return unreachable(service);
  }
}

/** How a cluster that TCP rules dial is checked without traffic. */
export interface HealthCheck {
  readonly everyMs: number;
  readonly endpoints: readonly HostPort[];
  /** TLS settings of a rule that dials it; undefined: none. */
  readonly tls: UpstreamTls | undefined;
}

/** A route, with what it carries. */
export interface DialledRoute {
  readonly transport: Transport;
  readonly route: RelayRoute;
}

export interface Target {
  readonly listeners: ReadonlyMap<string, ListenerPlan>;
  /** Everything that the rules dial, for diagnostics. */
  readonly routes: readonly DialledRoute[];
  readonly clusters: ReadonlyMap<string, Cluster>;
  /** By cluster. Disabled clusters, and those dialled only by UDP rules, have none: a UDP service may not use TCP. */
  readonly checks: ReadonlyMap<string, HealthCheck>;
  /** By rule id: the TLS settings of each rule that dials with TLS. */
  readonly pins: ReadonlyMap<string, UpstreamTls>;
  /** The parts that this agent leaves out, for its log. */
  readonly unsupported: readonly ConfigApplyError[];
}
