/**
 * Records each finished request: its time for `/metrics`, and one line in the log. A line has only the fields listed here, so no
 * body or header gets into it. Requests of callers with a token are logged within the budget of that logger, refusals of
 * strangers in the sampled log, and probes, metrics and documentation at level debug. `docs/reference/log.md` describes the
 * fields.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Counter, Histogram } from 'prom-client';
import { plainIp } from '../../../kernel/addresses.js';
import { errorText, type ServiceError } from '../../../kernel/errors.js';
import type { LogFields, Logger } from '../../../kernel/logger.js';
import { secondsBounds } from '../../../kernel/seconds-bounds.js';
import type { RequestCounts, RestApp, RestDeps } from '../deps.js';

/** The only values of the label `method`: a client may send any word. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS']);
const addressChars = 64;
/** Longest sentence in a line. */
const textChars = 512;
/** The route of a request that matches no route. */
const unknown = 'unknown';

export function createRequestCounts(): RequestCounts {
  return {
    seconds: new Histogram({
      name: 'svc_rest_request_seconds',
      help: 'Time from the headers of a request to the end of its answer, by route, method and class of the status.',
      labelNames: ['route', 'method', 'status'],
      buckets: secondsBounds,
      registers: [],
    }),
    refused: new Counter({
      name: 'svc_rest_refused_total',
      help: 'Requests of callers with a token that were refused, by the code of the error.',
      labelNames: ['code'],
      registers: [],
    }),
  };
}

type Records = Pick<RestDeps, 'requests' | 'requestLog' | 'refusals' | 'clock' | 'logger'>;

/**
 * Records every request, including those to unknown paths and those whose client closed the connection.
 * @param endpoints all routes of the app, complete by the first request
 */
export function installRecords(app: RestApp, deps: Records, endpoints: readonly { readonly url: string }[]): void {
  const shownPath = createShownPath(endpoints);
  app.decorateRequest('failure', null);
  app.decorateRequest('streamedBytes', null);
  app.addHook('onRequest', (request, reply, next) => {
    const began = deps.clock.monotonic();
    let recorded = false;
    const record = (aborted: boolean): void => {
      if (recorded) return;
      recorded = true;
      // An error in an event listener would end the process: nothing catches it.
      try {
        note(request, reply, { ms: deps.clock.monotonic() - began, aborted }, shownPath, deps);
      } catch (error) {
        deps.logger.error({ request_id: request.id, error: errorText(error) }, 'a request could not be recorded');
      }
    };
    // Fastify's own hook is not called when the client closes the connection before the answer.
    reply.raw.on('finish', () => record(false));
    reply.raw.on('close', () => record(true));
    next();
  });
}

function note(
  request: FastifyRequest,
  reply: FastifyReply,
  { ms, aborted }: { readonly ms: number; readonly aborted: boolean },
  shownPath: (pathname: string) => string,
  deps: Records,
): void {
  const { routeOptions, failure } = request;
  const access = routeOptions.config?.access;
  const route = access === undefined ? unknown : (routeOptions.url ?? unknown);
  const method = methods.has(request.method) ? request.method : 'other';
  const status = reply.raw.headersSent ? reply.statusCode : null;
  deps.requests.seconds.observe({ route, method, status: classOf(status) }, ms / 1000);
  const userId = request.caller?.userId ?? null;
  if (userId !== null && failure !== null) deps.requests.refused.inc({ code: failure.code });
  const line: RequestLine = {
    request_id: request.id,
    method,
    route: route === unknown ? null : route,
    path: route === unknown || route.includes(':') ? shownPath(request.pathname) : route,
    status,
    duration_ms: Math.round(ms * 100) / 100,
    bytes: bytesOf(request, reply),
    user_id: userId,
    // A trusted proxy may forward any text.
    address: plainIp(request.ip).slice(0, addressChars),
    ...(aborted ? { aborted } : {}),
  };
  write(line, failure, access, deps);
}

type RequestLine = LogFields & {
  /** Null when the client closed the connection before it. */
  readonly status: number | null;
  readonly user_id: string | null;
  readonly address: string;
};

function write(
  line: RequestLine,
  failure: ServiceError | null,
  access: string | undefined,
  { requestLog, refusals }: Records,
): void {
  if (line.user_id === null && failure !== null && failure.code !== 'internal') {
    const { user_id: _none, ...rest } = line;
    refusals.note({ reason: `rest_${failure.code}`, ...rest, ...failureFields(failure) }, 'request refused');
    return;
  }
  const fields = failure === null ? line : { ...line, ...failureFields(failure) };
  requestLog[levelOf(line, access)](fields, 'request');
}

const failureFields = (failure: ServiceError): LogFields => ({
  error: (failure.hints.logged ?? failure.message).slice(0, textChars),
  ...(failure.cause === undefined ? {} : { cause: errorText(failure.cause).slice(0, textChars) }),
});

function levelOf({ status, user_id }: RequestLine, access: string | undefined): keyof Logger {
  if (status === null) return user_id === null ? 'debug' : 'info';
  // Strangers can flood the log with requests without a token; only sign-ins among them matter.
  if (user_id === null && access !== 'login' && status < 500) return 'debug';
  // A probe of an instance that is not ready: the reason is logged elsewhere.
  if (access === 'open' && status === 503) return 'debug';
  if (status === 503) return 'warn';
  return status >= 500 ? 'error' : 'info';
}

function classOf(status: number | null): string {
  return status === null ? 'aborted' : `${Math.floor(status / 100)}xx`;
}

/** Length of the answer's body. */
function bytesOf({ streamedBytes }: FastifyRequest, reply: FastifyReply): number {
  return streamedBytes ?? Number(reply.getHeader('content-length') ?? 0);
}

const id = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const hidden = '*';
const segmentsMax = 8;

/**
 * The path as the log may show it: words of known routes, and ids. Anything else (a token or password in the wrong place) and
 * the query are hidden.
 */
function createShownPath(endpoints: readonly { readonly url: string }[]): (pathname: string) => string {
  let words: ReadonlySet<string> | undefined;
  return (pathname) => {
    words ??= new Set(endpoints.flatMap(({ url }) => url.split('/')).filter((word) => word[0] !== ':'));
    const known = words;
    const segments = pathname.split('/', segmentsMax + 1);
    const shown = segments.slice(0, segmentsMax).map((word) => (known.has(word) || id.test(word) ? word : hidden));
    return segments.length > segmentsMax ? [...shown, hidden].join('/') : shown.join('/');
  };
}
