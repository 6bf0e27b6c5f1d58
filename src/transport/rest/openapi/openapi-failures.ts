/**
 * The failures of a route. They follow from its declaration (access, parameters, body); a route lists only what is special to
 * it. Pure. Implements `docs/contract/rest.md#errors`.
 */
import { z } from 'zod';
import { httpStatusOf, type ErrorCode } from '../../../kernel/errors.js';
import { reads } from '../checks/session-token.js';
import type { DeclaredRoute } from '../route-declaration.js';

interface FailureText {
  readonly description: string;
  /** An example of `error`. */
  readonly example: string;
}

/** Descriptions of the failures. */
export const failures: { readonly [code in ErrorCode]: FailureText } = {
  invalid_request: {
    description:
      'Malformed JSON, a wrong type, an unknown field or query parameter, a value out of range, or a body that names a resource that does not exist or does not fit',
    example: 'hops[0].listen_port: expected an integer from 1 to 65535',
  },
  unauthenticated: {
    description: 'The token is missing, malformed, expired or revoked, or the sign-in is wrong',
    example: 'expected a valid token in the header Authorization: Bearer <token>',
  },
  forbidden: {
    description:
      'The role of the caller does not allow it, or a change by cookie does not come from a page of the service',
    example: 'expected the role operator or admin',
  },
  not_found: {
    description: 'No resource has this id, or the resource that a repeated command would answer with is gone',
    example: 'no node has this id',
  },
  method_not_allowed: {
    description: 'The path exists, but not with the method that was sent; `Allow` lists those that it has',
    example: 'expected GET or POST',
  },
  conflict: {
    description:
      'A name that is taken, a resource that is in use, a listener that is claimed, or an Idempotency-Key that was used with another body. The sentence names what it collides with',
    example: 'name: the node "edge-1" (1f0c3f5e-6d0c-4f0b-9a55-3c1f0e6b7a10) has this name',
  },
  precondition_failed: {
    description: '`If-Match` does not match the version of the resource',
    example: 'if-match: the version is 4',
  },
  payload_too_large: {
    description: 'The body, or what the command would store, is too large',
    example: 'body: expected at most 262144 bytes',
  },
  unsupported_media_type: {
    description: 'The body is not `application/json` in UTF-8, or it is encoded',
    example: 'expected content-type application/json in UTF-8',
  },
  rate_limited: {
    description: 'Too many requests; `Retry-After` says when to try again',
    example: 'too many failed sign-ins; try again later',
  },
  internal: {
    description:
      "An unexpected fault; the service's log has the cause under this answer's `x-request-id`. With `x-position`, the change was written",
    example: "unexpected fault; the log holds the cause under this answer's x-request-id",
  },
  unavailable: {
    description:
      'The event store or the read store is unreachable, the service is starting or stopping, or it has not reached a position yet. Nothing was written unless the answer says that it may have been; with `x-position`, it was',
    example: 'the event store is out of reach; nothing was written',
  },
};

/** The failures of a route, by status. */
export function failuresOf({ method, url, schema, config }: DeclaredRoute): readonly ErrorCode[] {
  const headers = schema.headers instanceof z.ZodObject ? Object.keys(schema.headers.shape) : [];
  const api = url.startsWith('/api/');
  const named = new Set<ErrorCode>(config.refuses);
  const can: { readonly [code in ErrorCode]: boolean } = {
    // Every route under /api refuses unknown query parameters.
    invalid_request: api,
    unauthenticated: api || (schema.security ?? []).length > 0,
    // A change by cookie is refused to pages of other origins.
    forbidden: config.access === 'operator' || config.access === 'admin' || (api && !reads(method)),
    // A repeated command answers with the resource as it is now, which may be gone.
    not_found: schema.params !== undefined || headers.includes('idempotency-key'),
    method_not_allowed: true,
    conflict: headers.includes('idempotency-key'),
    precondition_failed: headers.includes('if-match'),
    payload_too_large: !reads(method),
    unsupported_media_type: !reads(method),
    // For too many unknown API tokens.
    rate_limited: api,
    internal: true,
    unavailable: true,
  };
  return (Object.keys(can) as ErrorCode[])
    .filter((code) => can[code] || named.has(code))
    .toSorted((a, b) => httpStatusOf(a) - httpStatusOf(b));
}
