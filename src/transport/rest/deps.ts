/** The dependencies and options of the REST transport. `buildRest` is in `build.ts`. */
import type { RequestListener, Server, ServerResponse } from 'node:http';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyTypeProvider,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
  RouteGenericInterface,
  RouteOptions,
} from 'fastify';
import type { Counter, Histogram } from 'prom-client';
import type { z } from 'zod';
import type { Backups } from '../../backups/backups.js';
import type { CommandHandlers } from '../../commands/handlers-port.js';
import type { Delivery } from '../../delivery/port.js';
import type { Feed, RecentEntries } from '../../feed/port.js';
import type { ServedKeys } from '../../domain/service/served-keys.js';
import type { Clock } from '../../kernel/clock.js';
import type { Ids } from '../../kernel/ids.js';
import type { Logger } from '../../kernel/logger.js';
import type { SampledLog } from '../../kernel/sampled-log.js';
import type { FleetQueries } from '../../projections/fleet/fleet-queries.js';
import type { Projections } from '../../projections/port.js';
import type { AgentFacts } from '../../reports/facts.js';
import type { StatusLedger } from '../../status/ledger.js';
import type { Webhooks } from '../../webhooks/port.js';
import type { Counts } from '../../reports/counts.js';
import type { Activity, Diagnostics, Reports } from '../../reports/port.js';
import type { Shown } from './answers/envelope.js';
import type { idParams } from './checks/path-id.js';
import type { AgentProgram } from './machines/agent-program.js';
import type { RouteConfig, RouteSchema } from './route-declaration.js';
import type { conditionalHeaders } from './schemas/headers.js';
import type { Timeouts } from './tuning.js';

export interface Readiness {
  readonly ready: boolean;
  /** Sentences on why it is not, and on what is wrong although it is. */
  readonly reasons: readonly string[];
}

/** Metrics of REST requests. */
export interface RequestCounts {
  readonly seconds: Histogram<'route' | 'method' | 'status'>;
  readonly refused: Counter<'code'>;
}

export interface AnswersUnderWay {
  /** Hands a server's requests on, a bounded number of one connection at a time. */
  inTurn(listener: RequestListener): RequestListener;
  /** Registers how a streamed answer ends itself when its connection must be closed. */
  endsBy(response: ServerResponse, end: () => void): void;
  /** Ends the connections of the server whose answers are not taken. */
  guard(server: Server): void;
  /** Bytes that clients have not read yet, with an estimate for each queued request. */
  waitingBytes(): number;
}

export interface RestSockets {
  /** Applies the bounds to a server. */
  guard(server: Server): void;
  readonly open: number;
}

export interface WaitingPlaces {
  /**
   * @returns gives the place back, once
   * @throws ServiceError `rate_limited` when all places are taken, before anything is written
   */
  take(userId: string): () => void;
  readonly taken: number;
}

export interface RestDeps {
  readonly commands: CommandHandlers;
  /** The stored read models. */
  readonly projections: Pick<Projections, 'deployments' | 'audit' | 'auditTrail' | 'incidents' | 'reached' | 'status'>;
  /** How far the state in memory has followed the log. */
  readonly held: {
    /** Log position of the newest command that a GET shows. */
    position(): number;
    /** True once a GET shows everything up to the log position; false after `timeoutMs`. */
    reached(position: number, timeoutMs: number): Promise<boolean>;
  };
  readonly fleet: FleetQueries;
  readonly delivery: Pick<Delivery, 'state' | 'pushed' | 'unsentMs' | 'snapshotJson'>;
  /** What agents did, from the log. */
  readonly agentFacts: Pick<AgentFacts, 'of' | 'onFact'>;
  /** The identity keys of the service, with the public half of the first and when it was made. */
  serviceIdentity(): {
    readonly first: { readonly public_key: string; readonly since: string };
    readonly served: ServedKeys;
  };
  /** The newest report of each node. */
  readonly reports: Reports;
  /** The last fact about each status. */
  readonly statusLedger: Pick<StatusLedger, 'last'>;
  /** Counts over the whole fleet, from those reports. */
  readonly counts: Omit<Counts, 'close'>;
  /**
   * When agent commands were delivered, and whether they were answered, by id; undelivered ones are left out.
   * @throws ServiceError `unavailable`
   */
  commandsDelivered(
    ids: readonly string[],
  ): Promise<ReadonlyMap<string, { readonly at: string; readonly answered: boolean }>>;
  readonly diagnostics: Pick<Diagnostics, 'of'>;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  /** Counts and logs refused requests of callers without a token. */
  readonly refusals: Pick<SampledLog, 'note'>;
  /** Logs one line for each request of a caller with a token. */
  readonly requestLog: Logger;
  readonly requests: RequestCounts;
  readonly sockets: Pick<RestSockets, 'guard'>;
  readonly answers: Pick<AnswersUnderWay, 'guard' | 'inTurn' | 'endsBy'>;
  readonly waitingDeploys: Pick<WaitingPlaces, 'take'>;
  readonly eventStreams: WaitingPlaces;
  readonly feed: Feed;
  readonly recent: RecentEntries;
  readonly webhooks: Webhooks;
  readonly backups: Pick<Backups, 'late'>;
  /** True once every session of the node that began before the call is closed on every instance; false after `timeoutMs`. */
  sessionsEnded(nodeId: string, timeoutMs: number, revision?: number): Promise<boolean>;
  /** Recent agent activity on all live instances. */
  activity(): Activity;
  readiness(): Readiness;
  /** Why commands are refused now (the event store is unreachable, a clock is wrong), or undefined. */
  commandsRefused(): string | undefined;
  readStoreAway(): boolean;
  /** The Prometheus text. */
  metrics(): Promise<string>;
}

/** The certificate that REST serves, which may be replaced while it runs. PEM texts. */
export interface ServedTls {
  current(): { readonly cert: string; readonly key: string };
  /** @returns a function that removes the listener */
  onChange(listener: (pair: { readonly cert: string; readonly key: string }) => void): () => void;
}

export interface RestOptions {
  /** Shown in the OpenAPI document. */
  readonly version: string;
  /** Origins that may call from a browser, compared as whole strings. Without any, no CORS header is sent. */
  readonly corsOrigins: readonly string[];
  /** `SVC_PUBLIC_URL`, an origin. */
  readonly publicUrl?: string | null | undefined;
  /** CIDRs of proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies: readonly string[];
  /** What an agent needs as `SVC_CONTROL_ENDPOINT` to reach this instance at a host. */
  readonly controlEndpoint: (host: string) => string;
  /** The agent's program, if machines get it from this service. */
  readonly agentProgram: () => Promise<AgentProgram | undefined>;
  /** When set, `/metrics` requires it as bearer token. */
  readonly metricsToken?: string | undefined;
  /** When set, REST is served over TLS. */
  readonly tls?: ServedTls | undefined;
  /** Replace the numbers of `tuning.ts`. */
  readonly timeouts?: Timeouts;
}

/** Handlers answer with the types of the domain, which are read-only. */
interface TypeProvider extends FastifyTypeProvider {
  validator: this['schema'] extends z.ZodType ? z.output<this['schema']> : unknown;
  serializer: this['schema'] extends z.ZodType ? Shown<this['schema']> : unknown;
}

type Instance = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeProvider
>;

/** A schema with what `usual-parts.ts` fills in. */
type Filled<S> = S &
  (S extends { readonly headers: z.ZodType } ? unknown : { readonly headers: typeof conditionalHeaders }) &
  (S extends { readonly params: z.ZodType } ? unknown : { readonly params: typeof idParams });

type AddRoute = <const S extends RouteSchema>(
  url: string,
  options: Omit<
    RouteOptions<
      RawServerDefault,
      RawRequestDefaultExpression,
      RawReplyDefaultExpression,
      RouteGenericInterface,
      unknown,
      Filled<S>,
      TypeProvider,
      FastifyBaseLogger
    >,
    'method' | 'url' | 'schema'
  > & { readonly schema: S; readonly config: RouteConfig },
) => unknown;

/** The methods of routes. */
type Method = 'get' | 'post' | 'put' | 'delete';

/** The fastify instance of the API: a route without its schemas and descriptions does not compile. */
export type RestApp = Omit<Instance, 'route' | Method> & { readonly [M in Method]: AddRoute };

/** For routes that are not in the OpenAPI document. */
export const undocumented = (app: RestApp): FastifyInstance => app as FastifyInstance;
