/**
 * The REST transport as one fastify instance: hooks in the order of the checks, then the routes. It does not listen.
 * Implements `docs/contract/rest.md#envelope`, and SVC_HTTP_* of `docs/contract/configuration.md#configuration`.
 */
import helmet from '@fastify/helmet';
import { serializerCompiler } from '@fastify/type-provider-zod';
import Fastify from 'fastify';
import { addressRanges } from '../../kernel/cidr.js';
import { limits } from '../../kernel/limits.js';
import { createAddressBudget } from './checks/address-budget.js';
import { apiTokenRoutes } from './resources/api-tokens.js';
import { auditRoutes } from './resources/audit.js';
import { authRoutes } from './resources/auth.js';
import { installBodies } from './checks/body.js';
import { installMinPosition, installOutages, installStaleness, installStoredReads } from './checks/consistency.js';
import { consoleRoutes, openConsole } from './console/console-routes.js';
import { decodableUrl, installCorrelation, requestId } from './checks/correlation.js';
import { installCors } from './checks/cors.js';
import type { DeclaredRoute, RouteConfig, RouteSchema } from './route-declaration.js';
import type { RestApp, RestDeps, RestOptions } from './deps.js';
import { eventRoutes } from './events/events.js';
import { applyRoutes } from './fleet-file/applies.js';
import { exportRoute } from './fleet-file/export.js';
import { planAndApplyRoutes } from './fleet-file/plan-and-apply.js';
import { setRoutes } from './fleet-file/sets.js';
import { sectionsOf } from './fleet-file/sections.js';
import { dashboardRoutes } from './resources/dashboard.js';
import { answerClientError, answerError, installErrors } from './answers/errors.js';
import { dashboardHistoryRoutes } from './resources/history.js';
import { installGate } from './checks/gate.js';
import { createOriginCheck } from './checks/session-token.js';
import { boundClosing, createHttpServer } from './server/http-server.js';
import { openApiRoutes } from './openapi/openapi.js';
import { machineRoutes } from './machines/machine-routes.js';
import { incidentRoutes } from './resources/incidents.js';
import { controlEndpointRoutes } from './resources/control-endpoint.js';
import { linkRoutes } from './fleet/links.js';
import { portRuntimeRoutes } from './fleet/port-runtime.js';
import { portRoutes } from './fleet/ports.js';
import { probeRoutes } from './probes.js';
import { installRecords } from './server/request-records.js';
import './request-state.js';
import { revertRoutes } from './resources/revert.js';
import { routesOfResources } from './resources.js';
import { installRollouts } from './checks/rolled-out.js';
import { settingsRoutes } from './resources/settings.js';
import { serviceIdentityRoutes } from './resources/service-identity.js';
import { nodeLabelRoutes } from './resources/node-labels.js';
import { topologyRoutes } from './resources/topology.js';
import { userRoutes } from './resources/users.js';
import { withUsual } from './usual-parts.js';
import { validatorCompiler } from './schemas/validation.js';

export type { RestApp, RestDeps, RestOptions } from './deps.js';

/** Builds the REST server; the caller listens and closes. Closing answers waiting deploys and refuses new requests. */
export async function buildRest(deps: RestDeps, options: RestOptions): Promise<RestApp> {
  const endpoints: DeclaredRoute[] = [];
  const app = Fastify({
    logger: false,
    serverFactory: (handler) =>
      createHttpServer(handler, {
        tls: options.tls,
        sockets: deps.sockets,
        answers: deps.answers,
        timeouts: options.timeouts,
      }),
    genReqId: (request) => requestId(request, () => deps.ids.next()),
    requestIdHeader: false,
    trustProxy: addressRanges(options.trustedProxies),
    rewriteUrl: (request) => decodableUrl(request.url ?? '/'),
    // `body.ts` bounds the size: fastify's own limit would cut the connection.
    bodyLimit: Number.MAX_SAFE_INTEGER,
    routerOptions: { maxParamLength: 16_384 },
    exposeHeadRoutes: false,
    return503OnClosing: false,
    clientErrorHandler: (error, socket) => answerClientError(error, socket, deps.refusals),
    frameworkErrors: (error, request, reply) => void answerError(error, request, reply, deps),
  }) as RestApp;
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);

  app.addHook('onRoute', (options) => {
    const { method, url, config } = options;
    // The catch-all route of the CORS plugin and those of the console are not in the document.
    if (config?.access === undefined || config.takes === undefined || Array.isArray(method)) return;
    // `RestApp` requires the other declarations of a route with `access` and `takes`.
    const declared = { method, url, schema: options.schema as RouteSchema, config: config as RouteConfig };
    options.schema = withUsual(declared);
    endpoints.push({ ...declared, schema: options.schema as RouteSchema });
  });
  boundClosing(app);
  installErrors(app, deps);
  installCorrelation(app);
  installRecords(app, deps, endpoints);
  await app.register(helmet, {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        baseUri: ["'none'"],
        formAction: ["'none'"],
        frameAncestors: ["'none'"],
      },
    },
    // With CORS, pages of other origins may read answers.
    crossOriginResourcePolicy:
      options.corsOrigins.length === 0 ? { policy: 'same-origin' } : { policy: 'cross-origin' },
    strictTransportSecurity: options.tls === undefined ? false : { maxAge: 31_536_000 },
  });
  await installCors(app, options.corsOrigins);
  const requireOwnOrigin = createOriginCheck(options.corsOrigins, options.publicUrl);
  installGate(app, deps, requireOwnOrigin);
  installBodies(app);
  installMinPosition(app, deps);
  installStoredReads(app, deps);
  installStaleness(app, deps);
  installOutages(app, deps);
  installRollouts(app, deps);

  authRoutes(app, deps, requireOwnOrigin);
  userRoutes(app, deps);
  apiTokenRoutes(app, deps);
  for (const routes of Object.values(routesOfResources)) routes(app, deps, options);
  portRoutes(app, deps);
  portRuntimeRoutes(app, deps);
  linkRoutes(app, deps);
  nodeLabelRoutes(app, deps);
  topologyRoutes(app, deps);
  controlEndpointRoutes(app, options);
  settingsRoutes(app, deps);
  serviceIdentityRoutes(app, deps);
  const sections = sectionsOf(endpoints);
  exportRoute(app, deps, sections);
  planAndApplyRoutes(app, deps, sections);
  applyRoutes(app, deps, sections);
  setRoutes(app, deps, sections);
  auditRoutes(app, deps);
  incidentRoutes(app, deps);
  eventRoutes(app, deps);
  revertRoutes(app, deps);
  dashboardRoutes(app, deps);
  dashboardHistoryRoutes(app, deps);
  const budget = createAddressBudget(limits.rest.withoutToken, 'requests', deps.clock);
  probeRoutes(app, deps, budget, options);
  const pages = openConsole();
  openApiRoutes(app, endpoints, budget, options, pages);
  consoleRoutes(app, pages);
  machineRoutes(app, budget, options);
  await app.ready();
  return app;
}
