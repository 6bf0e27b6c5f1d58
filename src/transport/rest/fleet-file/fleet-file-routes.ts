/**
 * The routes of the fleet as a file: export, plan and apply. Reading and writing documents is beside this file, the rules are
 * in `domain/fleet-file`. Implements `docs/contract/automation.md#the-fleet-as-a-file`.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { FileApplied, FilePlan, FileRequest, PlannedStep } from '../../../commands/handlers-port.js';
import type { FileFlags, FleetDocument } from '../../../domain/fleet-file/document.js';
import { ServiceError } from '../../../kernel/errors.js';
import { streams } from '../../../kernel/event.js';
import { limits } from '../../../kernel/limits.js';
import { createSemaphore } from '../../../kernel/semaphore.js';
import { yieldToEventLoop } from '../../../kernel/background.js';
import { deploymentsOf, stepsOf } from '../../../domain/fleet-file/applied.js';
import { changeWithNames, noReferences } from '../../../domain/fleet-file/naming.js';
import type { AuditEntry, WholeFleet } from '../../../projections/port.js';
import { answers, ok } from '../answers/envelope.js';
import { sendPieces } from '../answers/streamed-json.js';
import { callerOf, commandContext, ofStoredCommand, untilStored } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { documented, sample } from '../openapi/openapi-text.js';
import { auditChange, entrySchema } from '../resources/audit.js';
import type { DeploymentView } from '../resources/deployments.js';
import { deploymentSchema, viewsOf } from '../resources/deployments.js';
import { body, boolean, distinct, integer, oneOf, text } from '../schemas/fields.js';
import { applyHeaders, postHeaders, readHeaders } from '../schemas/headers.js';
import { query, queryInteger, queryText } from '../schemas/query.js';
import { idOf, nodeId } from '../schemas/shared-schemas.js';
import { tuning } from '../tuning.js';
import { defaultSet, readDocument, refusal } from './read-document.js';
import type { ReadDocument } from './read-document.js';
import type { Sections } from './sections.js';
import { changedSettings, documentLines } from './write-document.js';

const exampleDocument = 'svc: 1\nnodes:\n  edge-1: {address: 192.0.2.10}\n';

const exported = z
  .object({
    documents: documented(
      z.array(
        z
          .object({
            set: documented(z.string().nullable(), 'The set; null for what no set owns', 'edge-eu'),
            document: documented(z.string(), 'YAML', exampleDocument),
          })
          .meta({ id: 'FleetDocument', description: 'What one set owns' }),
      ),
      'One for each set',
    ),
    cursor: documented(z.string().nullable(), 'Place in the event feed that they belong to', 'AQ'),
  })
  .meta({ id: 'FleetExport', description: 'The fleet as documents' });

/** The longest number of deletes that anybody may allow. */
const mostDeletes = limits.fleetFile.resources;

const about = {
  prune: 'Delete what the set owns and the document does not have',
  adopt: 'Take over resources that no set owns',
  adopt_from: 'Sets whose resources this one may take over',
  max_deletes: 'How many resources may be deleted; by default the larger of 10 and a fifth of the set',
};

const textOfDocument = text(1, limits.fleetFile.documentBytes).refine(
  (value) => Buffer.byteLength(value) <= limits.fleetFile.documentBytes,
  { error: `expected at most ${limits.fleetFile.documentBytes} bytes` },
);

const flagFields = {
  prune: documented(boolean().optional(), about.prune, false),
  adopt: documented(boolean().optional(), about.adopt, false),
  adopt_from: documented(distinct(queryText, 0, 'set').optional(), about.adopt_from, ['edge-us']),
  max_deletes: documented(integer(0, mostDeletes).optional(), about.max_deletes, 10),
};

const planBody = body({
  document: documented(textOfDocument, 'The document, YAML or JSON', exampleDocument),
  ...flagFields,
}).meta({ id: 'FleetPlanRequest', description: 'A document, and what may be done for it' });

const queryFlag = oneOf(['true', 'false']).transform((value) => value === 'true');

/** With a body of YAML, flags are in the query. */
const queryFlags = {
  prune: queryFlag.optional().meta({ description: `${about.prune}; for a body of YAML` }),
  adopt: queryFlag.optional().meta({ description: `${about.adopt}; for a body of YAML` }),
  adopt_from: queryText
    .transform((value) => value.split(','))
    .optional()
    .meta({ description: `${about.adopt_from}, with commas between them; for a body of YAML` }),
  max_deletes: queryInteger(0, mostDeletes, `${about.max_deletes}; for a body of YAML`).optional(),
};
const flagQuery = query(queryFlags);
const applyQuery = query({
  ...queryFlags,
  issue_psks: queryFlag.optional().meta({ description: 'Issue PSKs for new nodes; for a body of YAML' }),
});

const ruleIds = (what: string) =>
  documented(z.array(z.string()), `Ids of rules that it ${what}`, [`${sample.chain}/0`]);

const stepSchema = z
  .object({
    action: documented(z.enum(['create', 'update', 'rename', 'delete', 'deploy', 'adopt']), 'What is done', 'update'),
    resource: z
      .object({
        type: documented(z.string(), 'Type of the resource', 'l4_chain'),
        name: documented(z.string(), 'Its name in the document', 'front'),
        id: documented(z.string().nullable(), 'Its id; null before it is created', sample.chain),
      })
      .meta({ id: 'FleetPlanResource', description: 'What a step is about' }),
    changes: documented(
      z.array(z.object(auditChange).meta({ id: 'FleetPlanChange', description: 'A field that changes' })),
      'The fields that change, with names in place of ids; secrets are masked',
    ),
  })
  .meta({ id: 'FleetPlanStep', description: 'One step of a plan' });

/** A plan as answers show it. */
type ShownPlan = Omit<FilePlan, 'mistakes' | 'steps'> & { readonly steps: readonly Omit<PlannedStep, 'final'>[] };

const planSchema: z.ZodType<ShownPlan> = z
  .object({
    steps: documented(z.array(stepSchema), 'In the order in which they are carried out'),
    nodes: documented(
      z.array(
        z
          .object({
            node_id: nodeId,
            node_name: documented(z.string(), 'Its name', 'edge-1'),
            added: ruleIds('gets'),
            changed: ruleIds('has changed'),
            removed: ruleIds('loses'),
          })
          .meta({ id: 'FleetPlanNode', description: 'The rules of a node that change' }),
      ),
      'The nodes whose rules change',
    ),
    obstacles: documented(z.array(z.string()), 'Why an apply would be refused; empty when nothing is in the way', []),
    commands: documented(z.int(), 'How many commands an apply would be', 1),
    etag: documented(z.string(), 'For the `If-Match` of an apply that does exactly this', 'Vmg3…'),
  })
  .meta({ id: 'FleetPlan', description: 'What a document would change' });

const tags = ['fleet'] as const;

type AppliedStepView = Omit<PlannedStep, 'final'>;

interface AppliedView {
  readonly apply_id: string;
  readonly steps: readonly AppliedStepView[];
  readonly commands: readonly AuditEntry[];
  readonly deployments: readonly DeploymentView[];
  readonly control_psks: readonly { readonly node: string; readonly control_psk: string | null }[];
  readonly incomplete: { readonly error: string; readonly commands_left: number } | null;
}

const appliedSchema: z.ZodType<AppliedView> = z
  .object({
    apply_id: idOf('Id of the apply', sample.command),
    steps: documented(z.array(stepSchema), 'What was done, in that order'),
    commands: documented(z.array(entrySchema), 'The audit entries; one, unless it was split'),
    deployments: documented(z.array(deploymentSchema), 'Of the chains that were deployed'),
    control_psks: documented(
      z.array(
        z
          .object({
            node: documented(z.string(), 'Name of a new node', 'edge-1'),
            control_psk: documented(
              z.string().nullable(),
              'Shown this once; null in the answer of a repeat',
              'svcpsk1_…',
            ),
          })
          .meta({ id: 'FleetControlPsk', description: 'The PSK of a new node' }),
      ),
      'Of new nodes, when they were to be issued',
    ),
    incomplete: documented(
      z
        .object({
          error: documented(z.string(), 'Why a later command was refused', 'conflict: the fleet has changed meanwhile'),
          commands_left: documented(z.int(), 'How many commands were not carried out', 1),
        })
        .nullable()
        .meta({ description: 'What is left' }),
      'What is left when a later command was refused; null when all was done',
      null,
    ),
  })
  .meta({ id: 'FleetApplied', description: 'What an apply did' });

const applyBody = body({
  document: documented(textOfDocument, 'The document, YAML or JSON', exampleDocument),
  ...flagFields,
  issue_psks: documented(boolean().optional(), 'Issue PSKs for new nodes, which are shown this once', false),
}).meta({ id: 'FleetApplyRequest', description: 'A document, and what may be done for it' });

type GivenFlags = {
  readonly prune?: boolean | undefined;
  readonly adopt?: boolean | undefined;
  readonly adopt_from?: readonly string[] | undefined;
  readonly max_deletes?: number | undefined;
};

function flagsOf(inBody: GivenFlags, inQuery: GivenFlags): FileFlags {
  return {
    prune: inBody.prune ?? inQuery.prune ?? false,
    adopt: inBody.adopt ?? inQuery.adopt ?? false,
    adoptFrom: [...(inBody.adopt_from ?? inQuery.adopt_from ?? [])].sort(),
    maxDeletes: inBody.max_deletes ?? inQuery.max_deletes,
  };
}

/** One at a time on an instance: each holds a whole document. @throws ServiceError `rate_limited` */
function createTurns(app: RestApp, what: string): <R>(run: () => Promise<R>) => Promise<R> {
  const places = createSemaphore({ places: 1, waiting: limits.fleetFile.waiting, waitMs: tuning.documentWaitMs });
  app.addHook('preClose', async () => places.close());
  return async (run) => {
    const leave = await places.enter();
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

export function fleetFileRoutes(app: RestApp, deps: RestDeps, sections: Sections): void {
  const planning = createTurns(app, 'plan');
  const applying = createTurns(app, 'apply');

  app.route({
    method: 'GET',
    url: '/api/fleet/export',
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'exportFleet',
      summary: 'The fleet as documents, one for each set',
      description:
        'Secrets, defaults and what the service assigns are left out. A self-signed certificate is its names. `?set=` without a value gives what no set owns; an unknown set gives no document.',
      tags,
      querystring: query({
        set: text(0, limits.rest.nameChars)
          .optional()
          .meta({ description: 'Only this set; empty for what no set owns', examples: ['edge-eu'] }),
      }),
      headers: readHeaders,
      response: answers(exported),
    },
    handler: async (request, reply) => {
      const whole = deps.fleet.whole();
      const { set } = request.query;
      const asked = set === undefined ? undefined : set === '' ? null : set;
      const { cursor } = whole.revision < 0 ? { cursor: null } : await deps.feed.behind(streams.fleet, whole.revision);
      return sendPieces(reply, exportPieces(sections, whole, asked, cursor));
    },
  });

  app.route({
    method: 'POST',
    url: '/api/fleet/plan',
    config: {
      access: 'anyone',
      takes: 'document',
      bodyBytes: limits.fleetFile.bodyBytes,
      mayOnlyLook: true,
      refuses: ['rate_limited'],
    },
    schema: {
      operationId: 'planFleet',
      summary: 'What a document would change; writes nothing',
      description:
        'The steps of an apply in their order, the rules of nodes that change, and the obstacles for which an apply would be a 409. Secrets that are left out count as kept, or as given where they are new. Mistakes of the document are a 400 with `line:column path: sentence` for each. The body may be the document itself, as `application/yaml`.',
      tags,
      querystring: flagQuery,
      // A repeat of what writes nothing is a plan anew.
      headers: postHeaders,
      body: planBody,
      response: answers(planSchema),
    },
    handler: (request) =>
      planning(async () => {
        const { document } = request.body;
        const read = await readDocument(document, sections, deps.ids);
        if (callerOf(request).role === 'viewer' && hasSecrets(read.document)) {
          throw new ServiceError('forbidden', 'expected a document without secrets; a viewer plans without them');
        }
        return ok(await planned(deps, read, requestOf(read, document, flagsOf(request.body, request.query))));
      }),
  });

  app.route({
    method: 'POST',
    url: '/api/fleet/apply',
    config: {
      access: 'operator',
      takes: 'document',
      bodyBytes: limits.fleetFile.bodyBytes,
      mayOnlyLook: true,
      refuses: ['conflict', 'rate_limited'],
    },
    schema: {
      operationId: 'applyFleet',
      summary: 'Carry out what a document asks for, as one command',
      description:
        'All of it or nothing, as one audit entry, with one generation for each touched node. New keys and certificates of credentials that exist come first, in a command of their own. With the `etag` of a plan as `If-Match`, it does what that plan says or is a 412. Obstacles are a 409. The body may be the document itself, as `application/yaml`.',
      tags,
      querystring: applyQuery,
      headers: applyHeaders,
      body: applyBody,
      response: answers(appliedSchema),
    },
    handler: (request, reply) =>
      applying(async () => {
        const text = request.body.document;
        const read = await readDocument(text, sections, deps.ids);
        const issuePsks = request.body.issue_psks ?? request.query.issue_psks ?? false;
        const wanted = { ...requestOf(read, text, flagsOf(request.body, request.query)), issuePsks };
        const ifMatch = request.headers['if-match'];
        const outcome = await deps.commands.fleetFile.apply(commandContext(request), wanted, ifMatch);
        if (outcome.kind === 'mistakes') {
          throw refusal(outcome.mistakes.map(({ at, message }) => read.mistake(at, message)));
        }
        if (outcome.commands.length > 0) void reply.header('x-position', String(outcome.position));
        await untilStored(deps, request, reply);
        return ok(await appliedView(deps, sections, outcome));
      }),
  });
}

/** @throws ServiceError `unavailable` while the read models do not hold the commands yet */
async function appliedView(
  deps: RestDeps,
  sections: Sections,
  { applyId, commands, controlPsks, incomplete }: Extract<FileApplied, { readonly kind: 'done' }>,
): Promise<AppliedView> {
  const nameOf = (type: string, id: string): string => deps.fleet.nameOf(type, id) ?? id;
  const entries = await Promise.all(
    commands.map(async ({ events: [{ metadata }] }) =>
      ofStoredCommand(await deps.projections.audit.get(metadata.command.id)),
    ),
  );
  return {
    apply_id: applyId,
    steps: commands.flatMap(stepsOf).map(({ action, resource: { type, id, name }, changes }) => ({
      action,
      resource: { type, id, name: name ?? nameOf(type, id) },
      changes: changes.map((change) =>
        changeWithNames(change, sections.referenceFields.get(type) ?? noReferences, nameOf),
      ),
    })),
    commands: entries,
    deployments: await viewsOf(deps, commands.flatMap(deploymentsOf)),
    control_psks: controlPsks.map(({ node, controlPsk }) => ({ node, control_psk: controlPsk })),
    incomplete: incomplete && { error: incomplete.error, commands_left: incomplete.commandsLeft },
  };
}

function requestOf({ document }: ReadDocument, text: string, flags: FileFlags): FileRequest {
  return { document, flags, digest: createHash('sha256').update(text).digest('hex') };
}

/** @throws ServiceError `invalid_request` with the mistakes that only the fleet shows */
async function planned(deps: RestDeps, read: ReadDocument, request: FileRequest): Promise<FilePlan> {
  const plan = await deps.commands.fleetFile.plan(request);
  if (plan.mistakes.length > 0) throw refusal(plan.mistakes.map(({ at, message }) => read.mistake(at, message)));
  return plan;
}

const secretFields = ['private_key', 'private_key_pem'] as const;

const hasSecrets = ({ resources }: FleetDocument): boolean =>
  resources.some(({ fields }) => secretFields.some((field) => typeof fields[field] === 'string'));

/** The sets of a fleet; the default one for the settings alone, too. */
function setsOf(sections: Sections, whole: WholeFleet): readonly (string | null)[] {
  const sets = new Set<string | null>();
  for (const type of [...sections.all.map((section) => section.type), 'listener_policy']) {
    for (const { managed_by } of whole.states(type)) sets.add(managed_by ?? null);
  }
  if (Object.keys(changedSettings(whole.settings)).length > 0) sets.add(defaultSet);
  return [...sets].sort((a, b) => (a === null ? 1 : b === null ? -1 : a < b ? -1 : 1));
}

const linesPerTurn = 200;

async function* exportPieces(
  sections: Sections,
  whole: WholeFleet,
  asked: string | null | undefined,
  cursor: string | null,
): AsyncGenerator<string, void> {
  let before = '{"documents":[';
  let lines = 0;
  for (const set of setsOf(sections, whole)) {
    if (asked !== undefined && asked !== set) continue;
    yield `${before}{"set":${JSON.stringify(set)},"document":"`;
    before = '"},';
    for (const line of documentLines(sections, whole, set, set === defaultSet)) {
      yield JSON.stringify(line).slice(1, -1);
      lines += 1;
      if (lines % linesPerTurn === 0) await yieldToEventLoop();
    }
  }
  yield `${before === '"},' ? '"}' : before}],"cursor":${JSON.stringify(cursor)}}`;
}
