/**
 * The catalogue of all errors that users and agents can get: code, HTTP status, gRPC status. Messages are not here: the
 * code that throws knows the field and what was expected. Implements `docs/contract/rest.md#errors`; gRPC statuses
 * follow `docs/contract/agent-protocol.md#control`.
 */

/** Numeric gRPC status codes that this service answers with. */
export const GrpcStatus = {
  OK: 0,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;
export type GrpcStatusCode = (typeof GrpcStatus)[keyof typeof GrpcStatus];

interface ErrorKind {
  readonly http: number;
  readonly grpc: GrpcStatusCode;
  /** One sentence for `docs/reference/errors.md`. */
  readonly meaning: string;
}

export const errorCatalogue = {
  invalid_request: {
    http: 400,
    grpc: GrpcStatus.INVALID_ARGUMENT,
    meaning: 'The request is malformed, or breaks a rule that the body alone shows.',
  },
  unauthenticated: {
    http: 401,
    grpc: GrpcStatus.UNAUTHENTICATED,
    meaning: 'The token is missing or has ended; at sign-in, the name or the password is wrong.',
  },
  forbidden: { http: 403, grpc: GrpcStatus.PERMISSION_DENIED, meaning: 'The caller has no role that allows it.' },
  not_found: { http: 404, grpc: GrpcStatus.NOT_FOUND, meaning: 'There is no such resource or route.' },
  method_not_allowed: {
    http: 405,
    grpc: GrpcStatus.UNIMPLEMENTED,
    meaning: 'The path exists with other methods; `Allow` names them.',
  },
  conflict: {
    http: 409,
    grpc: GrpcStatus.FAILED_PRECONDITION,
    meaning: 'The state of the fleet does not allow it: a name or listener is taken, or the resource is still in use.',
  },
  precondition_failed: {
    http: 412,
    grpc: GrpcStatus.ABORTED,
    meaning: '`If-Match` names a version other than the current one.',
  },
  payload_too_large: {
    http: 413,
    grpc: GrpcStatus.RESOURCE_EXHAUSTED,
    meaning: 'The body, the definition or the command is too large.',
  },
  unsupported_media_type: { http: 415, grpc: GrpcStatus.INVALID_ARGUMENT, meaning: 'The body is not JSON.' },
  rate_limited: {
    http: 429,
    grpc: GrpcStatus.RESOURCE_EXHAUSTED,
    meaning: 'A budget is used up; `Retry-After` says for how long.',
  },
  internal: { http: 500, grpc: GrpcStatus.INTERNAL, meaning: 'The service has a fault; its log has the cause.' },
  unavailable: {
    http: 503,
    grpc: GrpcStatus.UNAVAILABLE,
    meaning:
      'A store is out of reach, or the instance is not ready. Nothing was written, unless the message says otherwise. `Retry-After` says when to try again.',
  },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorCatalogue;

/** The HTTP status of an error's answer. */
export function httpStatusOf(code: ErrorCode): number {
  return errorCatalogue[code].http;
}

/** Headers of an error's answer: `Retry-After` in seconds, `Allow` with methods. */
interface ErrorHints {
  readonly retryAfterSeconds?: number;
  readonly allow?: readonly string[];
  /** Logged instead of a message that quotes the client, since a quote may be a secret in the wrong place. */
  readonly logged?: string;
}

/**
 * An error that the caller may see. `message` is one sentence that names the field by its JSON path and says what was
 * expected; it never contains a secret. Anything else that is thrown is answered as `internal`.
 */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly hints: ErrorHints;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; hints?: ErrorHints } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ServiceError';
    this.code = code;
    this.hints = options.hints ?? {};
  }

  get httpStatus(): number {
    return errorCatalogue[this.code].http;
  }
}

/** Text for the log about any thrown value. */
export function errorText(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

/** The default branch of an exhaustive switch: a missing case does not compile, and throws at run time. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`);
}
