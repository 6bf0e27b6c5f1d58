/** What hooks leave on a request and a route for those after them. Types only. */
import type { Caller } from '../../commands/handlers-port.js';

/** Who may call: `login` is open, `anyone` has a token; `open` is beside `/api`. */
export type Access = 'open' | 'login' | 'anyone' | 'operator' | 'admin';

/** `json`: a JSON object is required; `none`: empty or `{}`. */
export type BodyRule = 'json' | 'none';

declare module 'fastify' {
  interface FastifyContextConfig {
    readonly access?: Access;
    readonly takes?: BodyRule;
  }
  interface FastifyRequest {
    /** Set by the gate on every route that needs a token. */
    caller: Caller | null;
    /** The body as it was sent. */
    bodyBytes: Buffer | null;
    /** The path without the query, as it was sent. */
    pathname: string;
  }
}
