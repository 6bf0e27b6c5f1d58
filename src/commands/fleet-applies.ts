/**
 * The handlers of applies that were carried out: what became of one, its revert, and a set that is let go. The rules are in
 * `src/domain/fleet-file`. Implements `docs/contract/automation.md#the-fleet-as-a-file`.
 */
import type { AcceptedKey } from '../domain/aggregate/idempotency.js';
import { acceptedKey } from '../domain/aggregate/idempotency.js';
import { alreadyReverted, notRevertible, standingRevert } from '../domain/aggregate/reverts.js';
import { describeCommand } from '../domain/audit/describe.js';
import { hasSet } from '../domain/fleet-file/drift.js';
import type { ReleaseSet } from '../domain/fleet-file/release.js';
import { ownersIn } from '../domain/fleet-file/release.js';
import type { RevertSeveral } from '../domain/fleet-file/revert.js';
import { previewReverts } from '../domain/fleet-file/revert.js';
import { fleetSetType } from '../domain/fleet-set/declaration.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { fleetEvent, resourceOf } from '../domain/fleet/resources.js';
import { yieldToEventLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { timestamp } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import type { RecordedCommand } from '../kernel/event.js';
import { lastEvent, streams } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import type { DecidedOnFleet } from './aggregate.js';
import type {
  ApplyRequest,
  CommandHandlers,
  FileApplied,
  FleetReverted,
  FleetRevertHandlers,
} from './handlers-port.js';
import type { CommandContext, CommandOutcome, Gateway, ProjectionWait } from './port.js';
import { inPiecesAlone } from './in-pieces.js';
import type { AuditTrail } from './revert.js';
import { auditHolds } from './revert.js';
import { tuning } from './tuning.js';

type Done = Extract<FileApplied, { readonly kind: 'done' }>;

export interface AppliesHandlers extends Pick<CommandHandlers['fleetFile'], 'went' | 'revert' | 'release'> {
  /** The apply that a repeated key stands for, if it is one. */
  repeated(context: CommandContext, request: ApplyRequest): Promise<FileApplied | undefined>;
}

const idOf = ({ events: [first] }: RecordedCommand): string => first.metadata.command.id;

export interface AppliesOptions {
  readonly gateway: Gateway<Fleet, DecidedOnFleet>;
  /** The committed fleet. */
  readonly fleet: () => Fleet;
  readonly projections: ProjectionWait;
  readonly audit: AuditTrail;
  readonly reverts: FleetRevertHandlers;
  readonly clock: Clock;
  readonly ids: Ids;
}

export function createAppliesHandlers(options: AppliesOptions): AppliesHandlers {
  const { gateway, audit, clock } = options;

  /** The commands about an apply, oldest first: its own, their reverts, and reverts of these. */
  async function commandsAbout(id: string): Promise<readonly RecordedCommand[]> {
    const commands: RecordedCommand[] = [];
    for await (const { id: entryId } of audit.about(fleetSetType, id, -1)) {
      const command = await audit.command(entryId);
      if (command !== undefined) commands.unshift(command);
      await yieldToEventLoop();
    }
    return commands;
  }

  const isApply = ({ events: [{ type }] }: RecordedCommand): boolean => type === 'FleetApplied';

  function asDone(applyId: string, commands: readonly RecordedCommand[], position: number): Done {
    const { name } = commands[0]?.events[0].data ?? {};
    const events = commands.flatMap((command) => command.events);
    const issued = new Set(events.flatMap(({ type, data }) => (type === 'NodePskIssued' ? [data['node_id']] : [])));
    const nodes = events.filter(({ type, data }) => type === 'NodeCreated' && issued.has(data['node_id']));
    return {
      kind: 'done',
      applyId,
      set: typeof name === 'string' ? name : null,
      commands,
      // They were shown once.
      controlPsks: nodes.map(({ data }) => ({ node: String(data['name']), controlPsk: null })),
      incomplete: incompleteOf(commands),
      position,
    };
  }

  /** What a key was accepted for before; undefined when it is new, or of another body. */
  async function acceptedBefore({ idempotency }: CommandContext): Promise<AcceptedKey | undefined> {
    if (idempotency === undefined) return undefined;
    const now = clock.now();
    const key = await gateway.read((fleet) => acceptedKey(fleet.idempotency, idempotency.key_hash, now));
    return key?.body_hash === idempotency.body_hash ? key : undefined;
  }

  /** The commands about one apply or release that its key began, from the log itself: a repeat waits for no read model. */
  async function commandsBegunBy({ revision, at, resource_id: id }: AcceptedKey): Promise<readonly RecordedCommand[]> {
    const found: RecordedCommand[] = [];
    let looked = 0;
    for await (const command of gateway.commandsFrom(revision)) {
      const [first] = command.events;
      const { type, data, metadata } = first;
      looked += command.events.length;
      if (Date.parse(metadata.occurred_at) - at > tuning.severalWithinMs || looked > tuning.severalWithinEvents) break;
      // Asked second: the stream also has events about no resource.
      if (data['apply_id'] !== id || resourceOf(fleetEvent(first)).type !== fleetSetType) continue;
      found.push(command);
      if (type === 'FleetApplied' && data['part'] === data['parts']) break;
    }
    return found;
  }

  /** The reverts of an apply's commands, newest last. */
  function revertsIn(about: readonly RecordedCommand[]): readonly RecordedCommand[] {
    const applied = new Set(about.filter(isApply).map(idOf));
    return about.filter(({ events: [{ metadata }] }) => applied.has(metadata.revert_of ?? ''));
  }

  /** @throws ServiceError `not_found`, or `conflict` when nothing of it can be taken back */
  async function revertible(applyId: string): Promise<{
    readonly newestFirst: readonly RecordedCommand[];
    readonly rotations: readonly RecordedCommand[];
    readonly about: readonly RecordedCommand[];
  }> {
    const revision = await gateway.read((fleet) => fleet.revision.value);
    await auditHolds(options.projections, streams.fleet, revision);
    const about = await commandsAbout(applyId);
    const commands = about.filter(isApply);
    const [first] = commands;
    if (first === undefined) throw new ServiceError('not_found', `there is no apply ${applyId}`);
    const becauseOf = (command: RecordedCommand): string | null =>
      describeCommand(command)?.notRevertibleBecause ?? null;
    const [newestFirst, rotations]: [RecordedCommand[], RecordedCommand[]] = [[], []];
    for (const command of commands) {
      if (becauseOf(command) === null) newestFirst.unshift(command);
      else rotations.push(command);
      await yieldToEventLoop();
    }
    if (newestFirst.length === 0) {
      const { code, message } = notRevertible(becauseOf(first) ?? '');
      throw new ServiceError(code, `nothing can be taken back: ${message}`);
    }
    return { newestFirst, rotations, about };
  }

  async function revert(context: CommandContext, applyId: string, dryRun: boolean): Promise<FleetReverted> {
    const { newestFirst, rotations, about } = await revertible(applyId);
    if ((await acceptedBefore(context))?.resource_id === applyId) {
      return { commands: revertsIn(about), notReverted: rotations, position: options.fleet().position.value };
    }
    const { reverts } = options.fleet();
    const standing = newestFirst.filter((command) => standingRevert(reverts, idOf(command)) === undefined);
    const [newest] = newestFirst;
    if (standing.length === 0 && newest !== undefined) {
      throw new ServiceError('conflict', alreadyReverted(reverts, idOf(newest))?.message ?? 'it stands reverted');
    }
    // Before the first is written, so that all are or none is.
    const histories: RevertSeveral['histories'][] = [];
    for (const entry of standing) histories.push(await options.reverts.historiesOf(entry));
    const decided = await inPiecesAlone(options, (fleet) =>
      previewReverts(
        fleet,
        standing.map((entry, index) => ({ entry, histories: histories[index] ?? new Map() })),
      ),
    );
    if (!decided.ok) throw new ServiceError(decided.error.code, decided.error.message);
    if (dryRun) {
      const commands = decided.value.map((command) => asGivenBy(context, command));
      return { commands, notReverted: rotations, position: options.fleet().position.value };
    }
    const commands: RecordedCommand[] = [];
    let given = context;
    let position = options.fleet().position.value;
    for (const [index, entry] of standing.entries()) {
      let outcome: CommandOutcome<unknown>;
      try {
        outcome = await options.reverts.revert(given, entry);
      } catch (error) {
        if (index === 0 || !(error instanceof ServiceError)) throw error;
        // What stands is answered, and what is left named.
        return { commands, notReverted: [...standing.slice(index), ...rotations], position };
      }
      given = { ...context, idempotency: undefined };
      ({ position } = outcome);
      if (outcome.kind !== 'done') throw new ServiceError('conflict', 'the same revert is under way; try again');
      const [first, ...rest] = outcome.events;
      if (first !== undefined) commands.push({ stream: streams.fleet, events: [first, ...rest] });
    }
    return { commands, notReverted: rotations, position };
  }

  /** A command that was only tried, as it would be if its caller had given it now. */
  function asGivenBy(
    { actor, requestId, token }: CommandContext,
    { stream, events }: RecordedCommand,
  ): RecordedCommand {
    const id = options.ids.next();
    const [first, ...rest] = events.map((event) => ({
      ...event,
      metadata: {
        ...event.metadata,
        command: { ...event.metadata.command, id },
        actor,
        request_id: requestId,
        occurred_at: timestamp(clock.now()),
        ...(token === undefined ? {} : { token }),
      },
    }));
    if (first === undefined) throw new Error('a revert always has events');
    return { stream, events: [first, ...rest] };
  }

  async function release(context: CommandContext, set: string): Promise<Omit<FleetReverted, 'notReverted'>> {
    const known = await acceptedBefore(context);
    if (known !== undefined) {
      return { commands: await commandsBegunBy(known), position: options.fleet().position.value };
    }
    const owners = await gateway.read((fleet) => (hasSet(fleet, set) ? ownersIn(fleet, set) : undefined));
    if (owners === undefined) throw new ServiceError('not_found', 'no set has this name');
    const releaseId = options.ids.next();
    const commands: RecordedCommand[] = [];
    let position = options.fleet().position.value;
    for (let from = 0; from === 0 || from < owners.length; from += tuning.releasedAtOnce) {
      const some = owners.slice(from, from + tuning.releasedAtOnce);
      const command: ReleaseSet = { type: 'ReleaseSet', releaseId, set, owners: some };
      const given = from === 0 ? context : { ...context, idempotency: undefined };
      const outcome = await gateway.execute(command, given, () => undefined);
      ({ position } = outcome);
      if (outcome.kind !== 'done') throw new ServiceError('conflict', 'the same release is under way; try again');
      const [first, ...rest] = outcome.events;
      if (first !== undefined) commands.push({ stream: streams.fleet, events: [first, ...rest] });
    }
    return { commands, position };
  }

  return {
    async repeated(context, request) {
      const key = await acceptedBefore(context);
      if (key === undefined) return undefined;
      const commands = await commandsBegunBy(key);
      const [last] = commands.slice(-1);
      if (last === undefined)
        throw new ServiceError('unavailable', 'the log does not show the apply; it was carried out');
      const done = asDone(key.resource_id, commands, lastEvent(last).position);
      return { ...done, controlPsks: request.issuePsks ? done.controlPsks : [] };
    },
    async went(applyId) {
      const commands = (await commandsAbout(applyId)).filter(isApply);
      const last = commands.at(-1);
      return last === undefined ? undefined : asDone(applyId, commands, lastEvent(last).position);
    },
    revert,
    release,
  };
}

/** Commands of an apply that were never written. */
function incompleteOf(commands: readonly RecordedCommand[]): Done['incomplete'] {
  const parts = Number(commands[0]?.events[0].data['parts'] ?? 0);
  const left = parts - commands.length;
  return left <= 0 ? null : { error: 'conflict: a later command of the apply was refused', commandsLeft: left };
}
