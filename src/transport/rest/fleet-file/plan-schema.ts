/**
 * What plans and applies take, and what a plan answers. Implements `docs/contract/automation.md#the-fleet-as-a-file`, plan.
 */
import { z } from 'zod';
import type { FilePlan } from '../../../commands/handlers-port.js';
import type { FileFlags } from '../../../domain/fleet-file/document.js';
import { limits } from '../../../kernel/limits.js';
import { documented, sample } from '../schemas/documented.js';
import { auditChange } from '../resources/audit.js';
import { body, boolean, distinct, integer, oneOf, text } from '../schemas/fields.js';
import { query, queryInteger, queryText } from '../schemas/query.js';
import { nodeId } from '../schemas/shared-schemas.js';

export const tags = ['fleet'] as const;

export const exampleDocument = 'svc: 1\nnodes:\n  edge-1: {address: 192.0.2.10}\n';

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

export const planBody = body({
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
export const flagQuery = query(queryFlags);
export const applyQuery = query({
  ...queryFlags,
  issue_psks: queryFlag.optional().meta({ description: 'Issue PSKs for new nodes; for a body of YAML' }),
});

const ruleIds = (what: string) =>
  documented(z.array(z.string()), `Ids of rules that it ${what}`, [`${sample.chain}/0`]);

export const stepSchema = z
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

export const planSchema: z.ZodType<Omit<FilePlan, 'mistakes'>> = z
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

export const applyBody = body({
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

export function flagsOf(inBody: GivenFlags, inQuery: GivenFlags): FileFlags {
  return {
    prune: inBody.prune ?? inQuery.prune ?? false,
    adopt: inBody.adopt ?? inQuery.adopt ?? false,
    adoptFrom: [...(inBody.adopt_from ?? inQuery.adopt_from ?? [])].sort(),
    maxDeletes: inBody.max_deletes ?? inQuery.max_deletes,
  };
}
