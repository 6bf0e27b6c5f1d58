/** The declarations of a route for the hooks, and the state that hooks set on a request for later ones. Types only. */
import type { Caller } from '../../commands/handlers-port.js';
import type { ServiceError } from '../../kernel/errors.js';

/**
 * The callers that a route admits: everybody (`open` beside `/api`, `login` under it), `anyone` with a token, or a role
 * and those above it.
 */
export type Access = 'open' | 'login' | 'anyone' | 'operator' | 'admin';

/** `json` requires a JSON object; `document` one with a document, or the document itself as YAML; `optional` takes one or nothing, which counts as `{}`; `none` allows nothing or `{}`. */
export type BodyRule = 'json' | 'document' | 'optional' | 'none';

declare module 'fastify' {
  interface FastifyContextConfig {
    readonly access?: Access;
    readonly takes?: BodyRule;
    /** The largest body, when it is not that of all routes. */
    readonly bodyBytes?: number;
    readonly readsStored?: boolean;
  }
  interface FastifyRequest {
    /** Set by the gate on every route that needs a token. */
    caller: Caller | null;
    /** SHA-256 of the body as it was sent, of a request with an idempotency key and a body. */
    bodyHash: string | null;
    /** Bytes sent so far of an answer that is sent in pieces. */
    streamedBytes: number | null;
    /** The error that it was answered with, if any. */
    failure: ServiceError | null;
    /** The path without the query, as it was sent. */
    pathname: string;
  }
}
