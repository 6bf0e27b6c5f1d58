/** The schemas of plans, and the bodies of applies. Implements `docs/contract/automation.md#the-fleet-as-a-file`, plan. */
import { z } from 'zod';
import type { FileFlags } from '../../../domain/fleet-file/document.js';
import { nfc } from '../../../kernel/compare-text.js';
import { limits } from '../../../kernel/limits.js';
import { component, documented, sample } from '../schemas/documented.js';
import { auditChange } from '../resources/audit.js';
import { warningsSchema } from '../resources/warnings.js';
import { body, boolean, distinct, integer, oneOf, text } from '../schemas/fields.js';
import { query, queryInteger, queryText } from '../schemas/query.js';
import { nodeId } from '../schemas/shared-schemas.js';

export const exampleDocument = 'svc: 1\nnodes:\n  edge-1: {address: 192.0.2.10}\n';

/** The largest number of deletes that a request may allow. */
const mostDeletes = limits.fleetFile.resources;

const about = {
  prune: 'Delete resources of the set that the document lacks',
  adopt: 'Take over resources that no set owns',
  adopt_from: 'Sets whose resources this one may take over',
  max_deletes: 'Most resources that may be deleted; by default 10 or a fifth of the set, whichever is larger',
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
}).meta({ id: 'FleetPlanRequest', description: 'A document with options' });

const queryFlag = oneOf(['true', 'false']).transform((value) => value === 'true');

/** For a body in YAML, options are in the query. */
const queryFlags = {
  prune: queryFlag.optional().meta({ description: `${about.prune}; for a body in YAML` }),
  adopt: queryFlag.optional().meta({ description: `${about.adopt}; for a body in YAML` }),
  adopt_from: queryText
    .transform((value) => value.split(','))
    .optional()
    .meta({ description: `${about.adopt_from}, comma-separated; for a body in YAML` }),
  max_deletes: queryInteger(0, mostDeletes, `${about.max_deletes}; for a body of YAML`).optional(),
};
export const flagQuery = query(queryFlags);
export const applyQuery = query({
  ...queryFlags,
  issue_psks: queryFlag.optional().meta({ description: 'Issue PSKs for new nodes; for a body in YAML' }),
});

const ruleIds = (what: string) =>
  documented(z.array(z.string()), `Ids of rules that it ${what}`, [`${sample.chain}/0`]);

export const stepSchema = component('FleetPlanStep', 'One step of a plan', {
  action: documented(
    z.enum(['create', 'update', 'rename', 'delete', 'deploy', 'adopt']),
    'Action of the step',
    'update',
  ),
  resource: component('FleetPlanResource', 'The resource of a step', {
    type: documented(z.string(), 'Type of the resource', 'l4_chain'),
    name: documented(z.string(), 'Its name in the document', 'front'),
    id: documented(z.string().nullable(), 'Its id; null before it is created', sample.chain),
  }),
  changes: documented(
    z.array(component('FleetPlanChange', 'A field that changes', auditChange)),
    'The fields that change, with names in place of ids; secrets are masked',
  ),
});

export const planSchema = component('FleetPlan', 'The changes that a document would make', {
  steps: documented(z.array(stepSchema), 'In the order of execution'),
  nodes: documented(
    z.array(
      component('FleetPlanNode', 'The rules of a node that change', {
        node_id: nodeId,
        node_name: documented(z.string(), 'Its name', 'edge-1'),
        added: ruleIds('gets'),
        changed: ruleIds('has changed'),
        removed: ruleIds('loses'),
      }),
    ),
    'The nodes whose rules change',
  ),
  obstacles: documented(z.array(z.string()), 'Why an apply would be refused; empty if it would not', []),
  warnings: warningsSchema,
  commands: documented(z.int(), 'Number of commands of an apply', 1),
  etag: documented(z.string(), 'As `If-Match`, makes an apply do exactly this or fail', 'Vmg3…'),
});

export const applyBody = body({
  document: documented(textOfDocument, 'The document, YAML or JSON', exampleDocument),
  ...flagFields,
  issue_psks: documented(boolean().optional(), 'Issue PSKs for new nodes, which are shown only once', false),
}).meta({ id: 'FleetApplyRequest', description: 'A document with options' });

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
    adoptFrom: (inBody.adopt_from ?? inQuery.adopt_from ?? []).map(nfc).sort(),
    maxDeletes: inBody.max_deletes ?? inQuery.max_deletes,
  };
}
