/**
 * The handlers of the fleet as a file: what a document would change, found on the committed fleet without holding up
 * anything else. The rules are in `src/domain/fleet-file`. Implements `docs/contract/automation.md#the-fleet-as-a-file`.
 */
import { createHash } from 'node:crypto';
import { acceptedKey } from '../domain/aggregate/idempotency.js';
import type { ApplyDocument } from '../domain/fleet-file/apply.js';
import { changedMeanwhile } from '../domain/fleet-file/apply.js';
import { setsKey } from '../domain/fleet-set/declaration.js';
import { compareWithFleet } from '../domain/fleet-file/compare.js';
import type { Comparison } from '../domain/fleet-file/compare.js';
import { carryOut } from '../domain/fleet-file/carry-out.js';
import type { CarriedOut, Step } from '../domain/fleet-file/carry-out.js';
import type { DocumentMistake, FileFlags, FleetDocument } from '../domain/fleet-file/document.js';
import { changeWithNames, noReferences } from '../domain/fleet-file/naming.js';
import type { FleetCommand } from '../domain/fleet/resources.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import type { AuditChange } from '../domain/resource/audit-change.js';
import type { ResourceMeta } from '../domain/resource/meta.js';
import { yieldToEventLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import type { RecordedCommand } from '../kernel/event.js';
import { streams } from '../kernel/event.js';
import { ServiceError } from '../kernel/errors.js';
import type { Ids } from '../kernel/ids.js';
import { canonicalJson } from '../kernel/json.js';
import { limits } from '../kernel/limits.js';
import type { Keyring } from '../security/keyring.js';
import { withKeys } from './fleet-file-keys.js';
import type {
  ApplyRequest,
  CommandHandlers,
  FileApplied,
  FilePlan,
  FileRequest,
  PlannedStep,
} from './handlers-port.js';
import { issuePsk } from './nodes.js';
import type { CommandContext, Gateway, ProjectionWait } from './port.js';
import type { AuditTrail } from './revert.js';
import { auditHolds } from './revert.js';
import { tuning } from './tuning.js';

export interface FleetFileOptions {
  readonly gateway: Gateway<Fleet, FleetCommand | ApplyDocument>;
  /** The committed fleet. */
  readonly fleet: () => Fleet;
  readonly keyring: Keyring;
  /** 32 bytes, part of every PSK. */
  readonly servicePublic: Uint8Array;
  /** Repeats are answered from the audit. */
  readonly projections: ProjectionWait;
  readonly audit: Pick<AuditTrail, 'command' | 'about'>;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** What a document would do to the fleet at one revision. */
interface Worked {
  readonly document: FleetDocument;
  readonly comparison: Comparison;
  readonly outcome: CarriedOut;
  readonly generated: ReadonlySet<string>;
  readonly mistakes: readonly DocumentMistake[];
}

export function createFleetFileHandlers(options: FleetFileOptions): CommandHandlers['fleetFile'] {
  const { gateway, keyring, clock } = options;

  /** The comparison with a fleet that stays the same meanwhile; at last without a pause. */
  async function compared(document: FleetDocument, flags: FileFlags): Promise<Comparison> {
    for (let attempt = 1; ; attempt += 1) {
      const fleet = options.fleet();
      const revision = fleet.revision.value;
      const comparing = compareWithFleet(fleet, document, flags);
      for (;;) {
        const step = comparing.next();
        if (step.done === true) return step.value;
        if (attempt < tuning.fileAttempts) await yieldToEventLoop();
        if (options.fleet() !== fleet || fleet.revision.value !== revision) break;
      }
    }
  }

  /** @param psks where PSKs of new nodes are kept, when they are to be issued */
  async function worked(
    { document, flags }: FileRequest,
    presume: boolean,
    psks?: Map<string, string>,
  ): Promise<Worked> {
    // Behind all commands before, at the end of the log.
    await gateway.read(() => undefined);
    const keyed = await withKeys(options.fleet(), document, {
      now: clock.now(),
      presume,
      psk(id) {
        if (psks === undefined) return null;
        const { controlPsk, psk } = issuePsk(options, id);
        psks.set(id, controlPsk);
        return psk;
      },
      seal(id, { privateKey }) {
        if (privateKey === undefined) return null;
        const sealed = keyring.seal(privateKey, { stream: streams.fleet, resourceId: id, field: 'private_key' });
        privateKey.fill(0);
        return sealed;
      },
    });
    if (keyed.mistakes.length > 0)
      return { ...nothing, document, generated: keyed.generated, mistakes: keyed.mistakes };
    const comparison = await compared(keyed.document, flags);
    const outcome = carryOut(options.fleet(), comparison.wishes);
    const mistakes = [...comparison.mistakes, ...outcome.mistakes];
    return { document: keyed.document, comparison, outcome, generated: keyed.generated, mistakes };
  }

  return {
    async plan(request) {
      const work = await worked(request, true);
      return planOf(options.fleet(), request, work);
    },
    async apply(context, request, ifMatch) {
      for (let attempt = 1; ; attempt += 1) {
        const psks = request.issuePsks ? new Map<string, string>() : undefined;
        const work = await worked(request, false, psks);
        if (work.mistakes.length > 0) return { kind: 'mistakes', mistakes: work.mistakes };
        const plan = planOf(options.fleet(), request, work);
        const known = await repeated(context, request);
        if (known !== undefined) return known;
        if (ifMatch !== undefined && ifMatch !== '*' && !ifMatch.includes(plan.etag)) {
          throw new ServiceError('precondition_failed', `If-Match: ${changedMeanwhile}`);
        }
        if (plan.obstacles.length > 0) throw new ServiceError('conflict', plan.obstacles.slice(0, 50).join('; '));
        try {
          return await carriedOut(context, request, work, psks ?? new Map());
        } catch (error) {
          const moved = error instanceof ServiceError && error.code === 'precondition_failed';
          if (!moved || ifMatch !== undefined || attempt >= tuning.fileAttempts) throw error;
        }
      }
    },
  };

  /** The apply that a repeated key stands for, if it is one. */
  async function repeated(context: CommandContext, request: ApplyRequest): Promise<FileApplied | undefined> {
    const { idempotency } = context;
    if (idempotency === undefined) return undefined;
    const now = clock.now();
    const accepted = await gateway.read((fleet) => ({
      key: acceptedKey(fleet.idempotency, idempotency.key_hash, now),
      revision: fleet.revision.value,
    }));
    if (accepted.key === undefined || accepted.key.body_hash !== idempotency.body_hash) return undefined;
    await auditHolds(options.projections, streams.fleet, accepted.revision);
    const commands: RecordedCommand[] = [];
    for await (const { id } of options.audit.about('fleet', accepted.key.resource_id, -1)) {
      const command = await options.audit.command(id);
      if (command !== undefined) commands.unshift(command);
    }
    const created = commands.flatMap(({ events }) => events).filter(({ type }) => type === 'NodePskIssued');
    const fleet = options.fleet();
    return {
      kind: 'done',
      applyId: accepted.key.resource_id,
      commands,
      controlPsks: request.issuePsks
        ? created.map(({ data }) => ({ node: fleet.nameOf('node', String(data['node_id'])) ?? '', controlPsk: null }))
        : [],
      incomplete: incompleteOf(commands),
      position: fleet.position.value,
    };
  }

  /** Writes the commands one after the other. What stands when a later one is refused stands. */
  async function carriedOut(
    context: CommandContext,
    { digest, document }: ApplyRequest,
    { comparison, outcome }: Worked,
    psks: ReadonlyMap<string, string>,
  ): Promise<FileApplied> {
    const applyId = options.ids.next();
    const parts = partsOf(outcome.steps);
    const moved = options.fleet().singleton(setsKey)[document.set ?? '']?.document_sha256 !== digest;
    // Of the same document as before, without a step, nothing is written.
    const written = parts.length > 0 ? parts : document.set !== null && moved ? [[]] : [];
    const commands: RecordedCommand[] = [];
    let position = options.fleet().position.value;
    const done = (incomplete: Extract<FileApplied, { kind: 'done' }>['incomplete']): FileApplied => {
      const names = namesIn(document);
      const controlPsks = [...psks].map(([id, controlPsk]) => ({ node: names.get(id) ?? id, controlPsk }));
      return { kind: 'done', applyId, commands, controlPsks, incomplete, position };
    };
    for (const [index, steps] of written.entries()) {
      const applied = {
        apply_id: applyId,
        name: document.set,
        document_sha256: digest,
        part: index + 1,
        parts: written.length,
      };
      const wishes = steps.map(({ wish }) => wish);
      const versions = index === 0 ? comparison.versions : [];
      // A key stands for the whole apply, so its first command carries it.
      const given = index === 0 ? context : { ...context, idempotency: undefined };
      try {
        const result = await gateway.execute(
          { type: 'ApplyDocument', applied, wishes, versions },
          given,
          () => undefined,
        );
        if (result.kind !== 'done') throw new ServiceError('conflict', 'the same apply is under way; try again');
        const [first, ...rest] = result.events;
        if (first !== undefined) commands.push({ stream: streams.fleet, events: [first, ...rest] });
        ({ position } = result);
      } catch (error) {
        if (index === 0 || !(error instanceof ServiceError)) throw error;
        return done({ error: `${error.code}: ${error.message}`, commandsLeft: written.length - index });
      }
    }
    return done(null);
  }
}

/** Commands of an apply that were never written. */
function incompleteOf(commands: readonly RecordedCommand[]): Extract<FileApplied, { kind: 'done' }>['incomplete'] {
  const [first] = commands;
  const parts = Number(first?.events[0].data['parts'] ?? 0);
  const left = parts - commands.length;
  return left <= 0 ? null : { error: 'conflict: a later command of the apply was refused', commandsLeft: left };
}

const nothing: Pick<Worked, 'comparison' | 'outcome'> = {
  comparison: { wishes: [], mistakes: [], obstacles: [], versions: [] },
  outcome: { steps: [], mistakes: [], obstacles: [], nodes: [] },
};

function planOf(fleet: Fleet, request: FileRequest, work: Worked): FilePlan {
  const { comparison, outcome, mistakes } = work;
  const names = namesIn(work.document);
  const nameOf = (type: string, id: string): string => names.get(id) ?? fleet.nameOf(type, id) ?? id;
  const steps = outcome.steps.map((step) => plannedStep(fleet, step, work, nameOf));
  const parts = partsOf(outcome.steps);
  const obstacles = [...new Set([...comparison.obstacles, ...outcome.obstacles, ...tooLarge(parts)])];
  return {
    mistakes,
    steps,
    nodes: outcome.nodes,
    obstacles,
    commands: parts.length,
    etag: etagOf(fleet, request, work, steps, obstacles),
  };
}

/** What cannot be taken back has a command of its own, so that the rest can. */
function partsOf(steps: readonly Step[]): readonly (readonly Step[])[] {
  return [steps.filter(({ final }) => final), steps.filter(({ final }) => !final)].filter((part) => part.length > 0);
}

/** Bytes of an event's metadata, at most. */
const metadataBytes = 512;

function tooLarge(parts: readonly (readonly Step[])[]): readonly string[] {
  return parts.flatMap((part) => {
    const events = part.flatMap((step) => step.events);
    const bytes = events.reduce((sum, event) => sum + Buffer.byteLength(JSON.stringify(event)) + metadataBytes, 0);
    if (bytes <= limits.events.commandBytes) return [];
    return [
      `the ${part.length} steps make events of ${bytes} bytes; expected at most ${limits.events.commandBytes} for one command, so apply the document in parts`,
    ];
  });
}

/** The names of a document's own resources, by the ids that stand for them. */
const namesIn = ({ resources }: FleetDocument): ReadonlyMap<string, string> =>
  new Map(resources.map(({ id, name }) => [id, name]));

/** What the service makes is not told before it is made. */
const madeFields: ReadonlySet<string> = new Set(['public_key', 'certificate', 'certificate_pem']);

const isThere = (fleet: Fleet, { type, id }: Step['wish']['resource']): boolean =>
  type === 'connectivity' || fleet.has(type, id);

function plannedStep(
  fleet: Fleet,
  { wish, changes, final }: Step,
  { document, generated }: Worked,
  nameOf: (type: string, id: string) => string,
): PlannedStep {
  const { action, resource } = wish;
  const shown = changes.map((change): AuditChange =>
    generated.has(resource.id) && madeFields.has(change.path) ? { ...change, after: 'generated' } : change,
  );
  const fields = document.referenceFields.get(resource.type) ?? noReferences;
  return {
    action,
    final,
    resource: { ...resource, id: isThere(fleet, resource) ? resource.id : null },
    changes: shown.map((change) => changeWithNames(change, fields, nameOf)),
  };
}

/** Binds all that an apply would do, and what it rests on. */
function etagOf(
  fleet: Fleet,
  { digest, flags, document }: FileRequest,
  { outcome }: Worked,
  steps: readonly PlannedStep[],
  obstacles: readonly string[],
): string {
  const versionOf = (type: string, id: string): number => fleet.get<ResourceMeta>({ type }, id)?.version ?? 0;
  const touched = outcome.steps.map(({ wish: { resource } }) => versionOf(resource.type, resource.id));
  const referred = document.references.map(({ type, name }) => {
    const id = fleet.idOfName(type, name);
    return id === undefined ? [] : [id, versionOf(type, id)];
  });
  // What is created follows from the document, but for numbers that are assigned when it is.
  const changed = steps.map((step) => (step.action === 'create' ? { ...step, changes: [] } : step));
  const bound = { digest, flags, steps: changed, obstacles, touched, referred };
  return createHash('sha256').update(canonicalJson(bound)).digest('base64url');
}
