/** Plans a document on the fleet. Pure. Implements `docs/contract/automation.md#the-fleet-as-a-file`, plan. */
import { createHash } from 'node:crypto';
import { addNeeds } from '../domain/compile/needs.js';
import { carriedBytes } from '../domain/fleet-file/base.js';
import { carryOut, changedNodes, type Step } from '../domain/fleet-file/carry-out.js';
import { compareWithFleet, type Comparison } from '../domain/fleet-file/compare.js';
import type { DocumentMistake, FleetDocument } from '../domain/fleet-file/document.js';
import { changeWithNames, noReferences } from '../domain/fleet-file/naming.js';
import { partsOf } from '../domain/fleet-file/parts.js';
import { baseOf } from '../domain/fleet-set/declaration.js';
import { unlessConfirming } from '../domain/fleet/confirmations.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { draftAfter } from '../domain/fleet/hypothetical.js';
import type { AuditChange } from '../domain/resource/audit-change.js';
import type { ResourceMeta } from '../domain/resource/meta.js';
import type { Feature } from '../domain/snapshot/features.js';
import { canonicalJson } from '../kernel/json.js';
import { limits } from '../kernel/limits.js';
import { forEach } from '../kernel/pieces.js';
import { ok } from '../kernel/result.js';
import type { FilePlan, FileRequest, PlannedStep } from './fleet-file-port.js';

/** A document, and what it would do to the fleet at one revision. */
export interface Planned {
  readonly document: FleetDocument;
  readonly scope: Comparison['scope'];
  readonly versions: Comparison['versions'];
  /** The steps of each command. */
  readonly parts: readonly (readonly Step[])[];
  readonly plan: FilePlan;
}

/** The plan of a document with mistakes. */
export const mistaken = (mistakes: readonly DocumentMistake[]): FilePlan => ({
  mistakes,
  steps: [],
  nodes: [],
  obstacles: [],
  needs: new Map(),
  commands: 0,
  etag: '',
});

/** Bytes that a command needs besides its events: the touched nodes, the link. */
const marksBytes = 24 * 1024;

const stepsPerPiece = 100;

/**
 * Yields between two pieces. The fleet must not change before the end.
 * @param request whose document has its keys @param generated ids of the credentials whose key the service has just
 *   made
 */
export function* planDocument(
  fleet: Fleet,
  { document, flags, digest }: FileRequest,
  generated: ReadonlySet<string>,
): Generator<void, Planned> {
  const comparison = yield* compareWithFleet(fleet, document, flags);
  const first = { apply_id: '', name: document.set, document_sha256: digest, part: 1, parts: 1 };
  const outcome = yield* carryOut(draftAfter(fleet, [{ type: 'FleetApplied', data: first }]), comparison.changes);
  const { scope, versions } = comparison;
  const base = baseOf(fleet.singletons.fleet.value, document.set);
  // The revert carries the base too, and what each of two bases left.
  const scopeBytes = Buffer.byteLength(JSON.stringify([scope, base ?? null])) + 2 * carriedBytes;
  const roomBytes = limits.events.commandBytes - marksBytes - scopeBytes;
  const split = yield* partsOf(fleet, outcome.steps, roomBytes);
  const nodes = yield* changedNodes(fleet, outcome);
  const needs = new Map<string, Set<Feature>>();
  const waiting: string[] = [];
  yield* forEach(outcome.steps, stepsPerPiece, ({ events }) => {
    const free = unlessConfirming(fleet, ok(events), undefined);
    if (!free.ok) waiting.push(free.error.message);
    for (const event of events) addNeeds(needs, outcome.after, event);
  });
  // The same document without a step writes nothing.
  const onlyMovesBase = split.parts.length === 0 && document.set !== null && base?.document_sha256 !== digest;
  const parts = onlyMovesBase ? [[]] : split.parts;
  // The parts meet the obstacles of the whole again.
  const refusals = outcome.obstacles.length > 0 ? outcome.obstacles : split.obstacles;
  const names = namesIn(document);
  // What is still to be created has its id for this plan alone, which another one, with the same etag, has not.
  const withoutStandIns = (sentence: string): string =>
    sentence.replaceAll(/ \(([0-9a-f-]{36})\)/g, (whole, id: string) => (names.has(id) ? '' : whole));
  const obstacles = [...new Set([...comparison.obstacles, ...waiting, ...refusals].map(withoutStandIns))];
  const nameOf = (type: string, id: string): string => names.get(id) ?? fleet.nameOf(type, id) ?? id;
  const steps: PlannedStep[] = [];
  const etag = createHash('sha256');
  etag.update(canonicalJson({ digest, flags, obstacles }));
  yield* forEach(parts.flat(), stepsPerPiece, (step) => {
    const planned = plannedStep(fleet, step, document, generated, nameOf);
    steps.push(planned);
    const { type, id } = step.change.resource;
    // A create follows from the document, except for the numbers that it will be assigned.
    const bound = planned.action === 'create' ? { ...planned, changes: [] } : planned;
    etag.update(canonicalJson([bound, versionOf(fleet, type, id)]));
  });
  yield* forEach(document.references, 10 * stepsPerPiece, ({ type, name }) => {
    const id = fleet.idOfName(type, name);
    etag.update(canonicalJson(id === undefined ? [] : [id, versionOf(fleet, type, id)]));
  });
  const mistakes = [...comparison.mistakes, ...outcome.mistakes];
  const plan = { mistakes, steps, nodes, obstacles, needs, commands: parts.length, etag: etag.digest('base64url') };
  return { document, scope, versions, parts, plan };
}

const versionOf = (fleet: Fleet, type: string, id: string): number =>
  fleet.get<ResourceMeta>({ type }, id)?.version ?? 0;

/** The names of a document's own resources, by stand-in id. */
export const namesIn = ({ resources }: FleetDocument): ReadonlyMap<string, string> =>
  new Map(resources.map(({ id, name }) => [id, name]));

/** A plan hides these where the service will generate them. */
const madeFields: ReadonlySet<string> = new Set(['public_key', 'certificate', 'certificate_pem']);

const isThere = (fleet: Fleet, { type, id }: Step['change']['resource']): boolean =>
  type === 'connectivity' || fleet.has(type, id);

function plannedStep(
  fleet: Fleet,
  { change: { action, resource }, fields: changed }: Step,
  document: FleetDocument,
  generated: ReadonlySet<string>,
  nameOf: (type: string, id: string) => string,
): PlannedStep {
  const shown = changed.map((change): AuditChange =>
    generated.has(resource.id) && madeFields.has(change.path) ? { ...change, after: 'generated' } : change,
  );
  const fields = document.referenceFields.get(resource.type) ?? noReferences;
  return {
    action,
    resource: { ...resource, id: isThere(fleet, resource) ? resource.id : null },
    changes: shown.map((change) => changeWithNames(change, fields, nameOf)),
  };
}
