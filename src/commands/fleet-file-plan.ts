/**
 * A document worked out on the fleet, and the plan that answers show of it. Pure, and in pieces: a large document takes a
 * while. Implements `docs/contract/automation.md#the-fleet-as-a-file`, plan.
 */
import { createHash } from 'node:crypto';
import { carriedBytes } from '../domain/fleet-file/base.js';
import { begun } from '../domain/fleet-file/apply.js';
import type { Step } from '../domain/fleet-file/carry-out.js';
import { carryOut, changedNodes } from '../domain/fleet-file/carry-out.js';
import type { Comparison } from '../domain/fleet-file/compare.js';
import { compareWithFleet } from '../domain/fleet-file/compare.js';
import type { DocumentMistake, FleetDocument } from '../domain/fleet-file/document.js';
import { changeWithNames, noReferences } from '../domain/fleet-file/naming.js';
import { partsOf } from '../domain/fleet-file/parts.js';
import { baseOf } from '../domain/fleet-set/declaration.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import type { AuditChange } from '../domain/resource/audit-change.js';
import type { ResourceMeta } from '../domain/resource/meta.js';
import { canonicalJson } from '../kernel/json.js';
import { limits } from '../kernel/limits.js';
import type { FilePlan, FileRequest, PlannedStep } from './handlers-port.js';

/** What a document would do to the fleet at one revision. */
export interface Worked {
  readonly document: FleetDocument;
  readonly said: Comparison['said'];
  readonly versions: Comparison['versions'];
  /** The steps of each command. */
  readonly parts: readonly (readonly Step[])[];
  readonly plan: FilePlan;
}

/** What an apply of a document with these mistakes would be. */
export const mistaken = (mistakes: readonly DocumentMistake[]): FilePlan => ({
  mistakes,
  steps: [],
  nodes: [],
  obstacles: [],
  commands: 0,
  etag: '',
});

/** Bytes of a command besides the events of its steps and what its first event says: the nodes that it touches, its link. */
const marksBytes = 24 * 1024;

/** So many steps are shown at a time. */
const perPiece = 100;

/**
 * Yields between two pieces. The fleet must not change before the end.
 * @param document with its keys @param generated ids of the credentials whose key the service has made now
 */
export function* workedOut(
  fleet: Fleet,
  { document, flags, digest }: FileRequest,
  generated: ReadonlySet<string>,
): Generator<void, Worked> {
  const comparison = yield* compareWithFleet(fleet, document, flags);
  const first = { apply_id: '', name: document.set, document_sha256: digest, part: 1, parts: 1 };
  const outcome = yield* carryOut(begun(fleet, { type: 'FleetApplied', data: first }), comparison.wishes);
  const { said, versions } = comparison;
  const base = baseOf(fleet.singletons.fleet.value, document.set);
  // Its revert says the same of the base, and what each of two bases left.
  const saidBytes = Buffer.byteLength(JSON.stringify([said, base ?? null])) + 2 * carriedBytes;
  const roomBytes = limits.events.commandBytes - marksBytes - saidBytes;
  const split = yield* partsOf(fleet, outcome.steps, roomBytes);
  const nodes = yield* changedNodes(fleet, outcome);
  // Of the same document as before, without a step, nothing is written.
  const onlyMovesBase = split.parts.length === 0 && document.set !== null && base?.document_sha256 !== digest;
  const parts = onlyMovesBase ? [[]] : split.parts;
  // What is refused as a whole is refused in parts too.
  const outcomes = outcome.obstacles.length > 0 ? outcome.obstacles : split.obstacles;
  const obstacles = [...new Set([...comparison.obstacles, ...outcomes])];
  const names = namesIn(document);
  const nameOf = (type: string, id: string): string => names.get(id) ?? fleet.nameOf(type, id) ?? id;
  const steps: PlannedStep[] = [];
  const etag = createHash('sha256');
  etag.update(canonicalJson({ digest, flags, obstacles }));
  for (const [index, step] of parts.flat().entries()) {
    if (index > 0 && index % perPiece === 0) yield;
    const planned = plannedStep(fleet, step, document, generated, nameOf);
    steps.push(planned);
    const { type, id } = step.wish.resource;
    // What is created follows from the document, but for numbers that are assigned when it is.
    const bound = planned.action === 'create' ? { ...planned, changes: [] } : planned;
    etag.update(canonicalJson([bound, versionOf(fleet, type, id)]));
  }
  for (const [index, { type, name }] of document.references.entries()) {
    if (index > 0 && index % (10 * perPiece) === 0) yield;
    const id = fleet.idOfName(type, name);
    etag.update(canonicalJson(id === undefined ? [] : [id, versionOf(fleet, type, id)]));
  }
  const mistakes = [...comparison.mistakes, ...outcome.mistakes];
  const plan = { mistakes, steps, nodes, obstacles, commands: parts.length, etag: etag.digest('base64url') };
  return { document, said, versions, parts, plan };
}

const versionOf = (fleet: Fleet, type: string, id: string): number =>
  fleet.get<ResourceMeta>({ type }, id)?.version ?? 0;

/** The names of a document's own resources, by the ids that stand for them. */
export const namesIn = ({ resources }: FleetDocument): ReadonlyMap<string, string> =>
  new Map(resources.map(({ id, name }) => [id, name]));

/** What the service makes is not told before it is made. */
const madeFields: ReadonlySet<string> = new Set(['public_key', 'certificate', 'certificate_pem']);

const isThere = (fleet: Fleet, { type, id }: Step['wish']['resource']): boolean =>
  type === 'connectivity' || fleet.has(type, id);

function plannedStep(
  fleet: Fleet,
  { wish, changes }: Step,
  document: FleetDocument,
  generated: ReadonlySet<string>,
  nameOf: (type: string, id: string) => string,
): PlannedStep {
  const { action, resource } = wish;
  const shown = changes.map((change): AuditChange =>
    generated.has(resource.id) && madeFields.has(change.path) ? { ...change, after: 'generated' } : change,
  );
  const fields = document.referenceFields.get(resource.type) ?? noReferences;
  return {
    action,
    resource: { ...resource, id: isThere(fleet, resource) ? resource.id : null },
    changes: shown.map((change) => changeWithNames(change, fields, nameOf)),
  };
}
