/** The routes that plan and apply a document. Implements `docs/contract/automation.md#the-fleet-as-a-file`. */
import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { FileRequest } from '../../../commands/fleet-file-port.js';
import type { FileFlags, FleetDocument } from '../../../domain/fleet-file/document.js';
import { ServiceError } from '../../../kernel/errors.js';
import { limits } from '../../../kernel/limits.js';
import { createSemaphore } from '../../../kernel/semaphore.js';
import { answers, type Shown } from '../answers/envelope.js';
import { objectInPieces, sendPieces } from '../answers/streamed-json.js';
import { callerOf, commandContext } from '../checks/consistency.js';
import { warningsOf } from '../../../reports/status.js';
import type { RestApp, RestDeps } from '../deps.js';
import { withPlan } from '../checks/rolled-out.js';
import { applyHeaders } from '../schemas/headers.js';
import { tuning } from '../tuning.js';
import { appliedSchema, appliedView } from './apply-view.js';
import { applyBody, applyQuery, flagQuery, flagsOf, planBody, planSchema } from './plan-schema.js';
import { readDocument, type ReadDocument } from './read-document.js';
import type { Sections } from './sections.js';
import { createTexts } from './texts.js';

type Turns = <R>(request: FastifyRequest, run: () => Promise<R>) => Promise<R>;

/** Runs one at a time, fairly among users, because each holds a whole document. @throws ServiceError `rate_limited` */
function createTurns(app: RestApp, what: string): Turns {
  const places = createSemaphore({ places: 1, waiting: limits.fleetFile.waiting, waitMs: tuning.documentWaitMs });
  app.addHook('preClose', async () => places.close());
  return async (request, run) => {
    const leave = await places.enter(callerOf(request).userId);
    if (leave === undefined) {
      const hints = { retryAfterSeconds: tuning.waitingRetrySeconds };
      const message = `one ${what} at a time, and ${limits.fleetFile.waiting} may wait; nothing was written, try again later`;
      throw new ServiceError('rate_limited', message, { hints });
    }
    try {
      return await run();
    } finally {
      leave();
    }
  };
}

export function planAndApplyRoutes(app: RestApp, deps: RestDeps, sections: Sections): void {
  const texts = createTexts(deps.logger);
  app.addHook('preClose', async () => texts.close());
  const planning = createTurns(app, 'plan');
  const applying = createTurns(app, 'apply');

  app.post('/api/fleet/plan', {
    config: {
      access: 'anyone',
      takes: 'document',
      bodyBytes: limits.fleetFile.bodyBytes,
      mayOnlyLook: true,
      refuses: ['rate_limited'],
    },
    schema: {
      operationId: 'planFleet',
      summary: 'Plan what a document would change; writes nothing',
      description:
        'The steps of an apply in order, the rules that change on each node, and the obstacles that would make an apply a 409. Omitted secrets count as kept, or as given for new resources. Mistakes in the document are a 400 with `line:column path: sentence` for each. The body may be the document itself, as `application/yaml`.',
      querystring: flagQuery,
      body: planBody,
      response: answers(planSchema),
    },
    handler: (request, reply) =>
      planning(request, async () => {
        const { document } = request.body;
        const read = await readDocument(document, sections, deps.ids, texts);
        if (callerOf(request).role === 'viewer' && hasSecrets(read.document)) {
          throw new ServiceError('forbidden', 'expected a document without secrets; a viewer plans without them');
        }
        const wanted = requestOf(read, document, flagsOf(request.body, request.query));
        return sendPieces(reply, objectInPieces(await planned(deps, read, wanted)));
      }),
  });

  app.post('/api/fleet/apply', {
    config: {
      access: 'operator',
      takes: 'document',
      bodyBytes: limits.fleetFile.bodyBytes,
      mayOnlyLook: true,
      rollsOut: 'as planned',
      refuses: ['conflict', 'rate_limited'],
    },
    schema: {
      operationId: 'applyFleet',
      summary: 'Apply a document as one command',
      description:
        'All or nothing, as one audit entry, with one generation for each affected node. New keys and certificates of existing credentials come first, in a command of their own. With the `etag` of a plan as `If-Match`, it does exactly that plan or is a 412. Obstacles are a 409. The body may be the document itself, as `application/yaml`.',
      querystring: applyQuery,
      headers: applyHeaders,
      body: applyBody,
      response: answers(appliedSchema),
    },
    handler: (request, reply) =>
      applying(request, async () => {
        const text = request.body.document;
        const read = await readDocument(text, sections, deps.ids, texts);
        const issuePsks = request.body.issue_psks ?? request.query.issue_psks ?? false;
        const wanted = { ...requestOf(read, text, flagsOf(request.body, request.query)), issuePsks };
        const ifMatch = request.headers['if-match'];
        const outcome = await deps.commands.fleetFile.apply(commandContext(request), wanted, ifMatch);
        if (outcome.kind === 'mistakes') throw await read.refusal(outcome.mistakes);
        if (outcome.commands.length > 0) void reply.header('x-position', String(outcome.position));
        return sendPieces(reply, objectInPieces(withPlan(deps, request, await appliedView(deps, sections, outcome))));
      }),
  });
}

function requestOf({ document }: ReadDocument, text: string, flags: FileFlags): FileRequest {
  return { document, flags, digest: createHash('sha256').update(text).digest('hex') };
}

/** @throws ServiceError `invalid_request` with the mistakes that show only against the fleet */
async function planned(deps: RestDeps, read: ReadDocument, request: FileRequest): Promise<Shown<typeof planSchema>> {
  const { mistakes, needs, ...plan } = await deps.commands.fleetFile.plan(request);
  if (mistakes.length > 0) throw await read.refusal(mistakes);
  return { ...plan, warnings: warningsOf(deps, needs) };
}

const secretFields = ['private_key', 'private_key_pem'] as const;

const hasSecrets = ({ resources }: FleetDocument): boolean =>
  resources.some(({ fields }) => secretFields.some((field) => typeof fields[field] === 'string'));
