/** What a route declares for the hooks, and the state that hooks leave on a request for later ones. Types only. */
import type { Caller } from '../../commands/accounts-port.js';
import type { RolloutPlan } from '../../domain/rollout-start/start.js';
import type { ServiceError } from '../../kernel/errors.js';

/**
 * The callers that a route admits: everybody (`open` beside `/api`, `login` under it), `anyone` with a token, or a role
 * and those above it.
 */
export type Access = 'open' | 'login' | 'anyone' | 'operator' | 'admin';

/**
 * `json` requires a JSON object; `document` one with a fleet document, or the document itself as YAML; `optional` an object or
 * nothing, which counts as `{}`; `none` nothing or `{}`.
 */
export type BodyRule = 'json' | 'document' | 'optional' | 'none';

declare module 'fastify' {
  interface FastifyContextConfig {
    readonly access?: Access;
    readonly takes?: BodyRule;
    /** The largest body, where it differs from the general bound. */
    readonly bodyBytes?: number;
    readonly readsStored?: boolean;
    /** Its command may be rolled out; a dry run answers with the plan, or the route shows it itself. */
    readonly rollsOut?: 'as planned' | 'shown by itself';
  }
  interface FastifyRequest {
    /** Set by the gate on every route that needs a token. */
    caller: Caller | null;
    /** SHA-256 of the body as it was sent; null without an idempotency key or a body. */
    bodyHash: string | null;
    /** Bytes of a streamed answer that were sent so far. */
    streamedBytes: number | null;
    /** What a rollout made of its command, or would make of it; null when none was planned. */
    rolloutPlan: RolloutPlan | null;
    /** The error that answered it, if any. */
    failure: ServiceError | null;
    /** The path without the query, as it was sent. */
    pathname: string;
  }
}
