/**
 * Handlers of applies that were carried out: finding one, reverting it, and releasing a set. The rules are in
 * `src/domain/fleet-file`. Implements `docs/contract/automation.md#the-fleet-as-a-file`.
 */
import { acceptedKey, type AcceptedKey } from '../domain/aggregate/idempotency.js';
import { activeRevert, alreadyReverted, notRevertible } from '../domain/aggregate/reverts.js';
import { describeCommand } from '../domain/audit/describe.js';
import { hasSet } from '../domain/fleet-file/drift.js';
import { ownersIn } from '../domain/fleet-file/owned.js';
import { previewReverts } from '../domain/fleet-file/revert.js';
import { fleetSetType } from '../domain/fleet-set/declaration.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { fleetEvent, resourceOf } from '../domain/fleet/resources.js';
import type { Revert } from '../domain/revert/decide.js';
import { yieldToEventLoop } from '../kernel/background.js';
import { timestamp, type Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import { lastEvent, streams, type RecordedCommand } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import type { RolledOut } from './aggregate.js';
import type { FleetFileHandlers, ApplyRequest, FileApplied, FleetReverted } from './fleet-file-port.js';
import type { FleetRevertHandlers } from './handlers-port.js';
import type { CommandContext, CommandOutcome, Gateway, ProjectionWait } from './port.js';
import { inPiecesAlone } from './in-pieces.js';
import { auditHolds, type AuditTrail } from './revert.js';
import { refuseSeveral } from './rollouts.js';
import { tuning } from './tuning.js';

type DoneApply = Extract<FileApplied, { readonly kind: 'done' }>;

export interface AppliesHandlers extends Pick<FleetFileHandlers, 'find' | 'revert' | 'release'> {
  /** The apply that a repeated idempotency key refers to, if any. */
  repeated(context: CommandContext, request: ApplyRequest): Promise<FileApplied | undefined>;
}

export interface AppliesOptions {
  readonly gateway: Gateway<Fleet, RolledOut>;
  /** The committed fleet. */
  readonly fleet: () => Fleet;
  readonly projections: ProjectionWait;
  readonly audit: AuditTrail;
  readonly reverts: FleetRevertHandlers;
  readonly clock: Clock;
  readonly ids: Ids;
}

export function createAppliesHandlers(options: AppliesOptions): AppliesHandlers {
  return {
    async repeated(context, request) {
      const key = await acceptedBefore(options, context);
      if (key === undefined) return undefined;
      const commands = await commandsOfKey(options, key);
      const last = commands.at(-1);
      if (last === undefined)
        throw new ServiceError('unavailable', 'the log does not show the apply; it was carried out');
      const done = asDone(key.resource_id, commands, lastEvent(last).position);
      return { ...done, controlPsks: request.issuePsks ? done.controlPsks : [] };
    },
    async find(applyId) {
      const commands = (await commandsAbout(options, applyId)).filter(isApply);
      const last = commands.at(-1);
      return last === undefined ? undefined : asDone(applyId, commands, lastEvent(last).position);
    },
    revert: (context, applyId, dryRun) => revert(options, context, applyId, dryRun),
    release: (context, set) => release(options, context, set),
  };
}

const idOf = ({ events: [first] }: RecordedCommand): string => first.metadata.command.id;
const isApply = ({ events: [{ type }] }: RecordedCommand): boolean => type === 'FleetApplied';

/** The commands about an apply, oldest first: its own, their reverts, and the reverts of these. */
async function commandsAbout({ audit }: AppliesOptions, id: string): Promise<readonly RecordedCommand[]> {
  const commands: RecordedCommand[] = [];
  for await (const { id: entryId } of audit.about(fleetSetType, id, -1)) {
    const command = await audit.command(entryId);
    if (command !== undefined) commands.unshift(command);
    await yieldToEventLoop();
  }
  return commands;
}

function asDone(applyId: string, commands: readonly RecordedCommand[], position: number): DoneApply {
  const { name, parts } = commands[0]?.events[0].data ?? {};
  const events = commands.flatMap((command) => command.events);
  const issued = new Set(events.flatMap(({ type, data }) => (type === 'NodePskIssued' ? [data['node_id']] : [])));
  const nodes = events.filter(({ type, data }) => type === 'NodeCreated' && issued.has(data['node_id']));
  const commandsLeft = Number(parts ?? 0) - commands.length;
  return {
    kind: 'done',
    applyId,
    set: typeof name === 'string' ? name : null,
    commands,
    // A PSK is shown only once.
    controlPsks: nodes.map(({ data }) => ({ node: String(data['name']), controlPsk: null })),
    incomplete:
      commandsLeft <= 0 ? null : { error: 'conflict: a later command of the apply was refused', commandsLeft },
    position,
  };
}

/** What the idempotency key was accepted for before; undefined when it is new, or came with another body. */
async function acceptedBefore(
  { gateway, clock }: AppliesOptions,
  { idempotency }: CommandContext,
): Promise<AcceptedKey | undefined> {
  if (idempotency === undefined) return undefined;
  const now = clock.now();
  const key = await gateway.read((fleet) => acceptedKey(fleet.idempotency, idempotency.key_hash, now));
  return key?.body_hash === idempotency.body_hash ? key : undefined;
}

/** The commands of the apply or release that a key began, from the log itself, so that a repeat waits for no read model. */
async function commandsOfKey(
  { gateway }: AppliesOptions,
  { revision, at, resource_id: id }: AcceptedKey,
): Promise<readonly RecordedCommand[]> {
  const found: RecordedCommand[] = [];
  let looked = 0;
  for await (const command of gateway.commandsFrom(revision)) {
    const [first] = command.events;
    const { type, data, metadata } = first;
    looked += command.events.length;
    if (Date.parse(metadata.occurred_at) - at > tuning.severalWithinMs || looked > tuning.severalWithinEvents) break;
    // The id comes first, because the stream also has events that are about no resource.
    if (data['apply_id'] !== id || resourceOf(fleetEvent(first)).type !== fleetSetType) continue;
    found.push(command);
    if (type === 'FleetApplied' && data['part'] === data['parts']) break;
  }
  return found;
}

interface Revertible {
  readonly newestFirst: readonly RecordedCommand[];
  /** The commands that cannot be reverted. */
  readonly rotations: readonly RecordedCommand[];
  /** The reverts so far, newest last. */
  readonly reverts: readonly RecordedCommand[];
}

/** @throws ServiceError `not_found`, or `conflict` when nothing can be reverted */
async function revertible(options: AppliesOptions, applyId: string): Promise<Revertible> {
  await auditHolds(options.projections, await options.gateway.read((fleet) => fleet.position.value));
  const about = await commandsAbout(options, applyId);
  const commands = about.filter(isApply);
  const newestFirst: RecordedCommand[] = [];
  const rotations: RecordedCommand[] = [];
  let because: string | undefined;
  for (const command of commands) {
    const final = describeCommand(command)?.notRevertibleBecause ?? null;
    if (final === null) newestFirst.unshift(command);
    else rotations.push(command);
    because ??= final ?? '';
    await yieldToEventLoop();
  }
  if (because === undefined) throw new ServiceError('not_found', `there is no apply ${applyId}`);
  if (newestFirst.length === 0) {
    const { code, message } = notRevertible(because);
    throw new ServiceError(code, `nothing can be taken back: ${message}`);
  }
  const applied = new Set(commands.map(idOf));
  const reverts = about.filter(({ events: [{ metadata }] }) => applied.has(metadata.revert_of ?? ''));
  return { newestFirst, rotations, reverts };
}

async function revert(
  options: AppliesOptions,
  context: CommandContext,
  applyId: string,
  dryRun: boolean,
): Promise<FleetReverted> {
  const { newestFirst, rotations, reverts } = await revertible(options, applyId);
  const { position } = options.fleet();
  if ((await acceptedBefore(options, context))?.resource_id === applyId) {
    return { commands: reverts, notReverted: rotations, position: position.value };
  }
  const table = options.fleet().reverts;
  const active = newestFirst.filter((command) => activeRevert(table, idOf(command)) === undefined);
  const [newest] = newestFirst;
  if (active.length === 0 && newest !== undefined) {
    throw new ServiceError('conflict', alreadyReverted(table, idOf(newest))?.message ?? 'it was reverted');
  }
  if (newestFirst.length > 1) refuseSeveral(options.fleet(), context.rollout, 'the revert of the apply');
  // All are tried before the first is written, so that all are written or none.
  const tried = await previewed(options, active);
  if (dryRun) {
    if (context.rollout !== undefined && newest !== undefined) await options.reverts.preview(newest, context);
    const commands = tried.map((command) => asCommandOf(options, context, command));
    return { commands, notReverted: rotations, position: position.value };
  }
  return revertAll(options, context, active, rotations);
}

/** The commands that would revert the entries. @throws ServiceError the refusal */
async function previewed(
  options: AppliesOptions,
  entries: readonly RecordedCommand[],
): Promise<readonly RecordedCommand[]> {
  const reverts: Pick<Revert, 'entry' | 'histories'>[] = [];
  for (const entry of entries) reverts.push({ entry, histories: await options.reverts.historiesOf(entry) });
  const decided = await inPiecesAlone(options, (fleet) => previewReverts(fleet, reverts));
  if (!decided.ok) throw new ServiceError(decided.error.code, decided.error.message);
  return decided.value;
}

async function revertAll(
  options: AppliesOptions,
  context: CommandContext,
  entries: readonly RecordedCommand[],
  rotations: readonly RecordedCommand[],
): Promise<FleetReverted> {
  const commands: RecordedCommand[] = [];
  let position = options.fleet().position.value;
  for (const [index, entry] of entries.entries()) {
    let outcome: CommandOutcome<unknown>;
    try {
      outcome = await options.reverts.revert(index === 0 ? context : withoutKey(context), entry);
    } catch (error) {
      if (index === 0 || !(error instanceof ServiceError)) throw error;
      // Earlier reverts stay; the answer names what is left.
      return { commands, notReverted: [...entries.slice(index), ...rotations], position };
    }
    commands.push(...written(outcome, 'revert'));
    ({ position } = outcome);
  }
  return { commands, notReverted: rotations, position };
}

/** A key stands for all commands of a request, so only the first carries it. */
export const withoutKey = (context: CommandContext): CommandContext => ({ ...context, idempotency: undefined });

/** The command of an outcome, as the log holds it; none if nothing was written. */
export function written(outcome: CommandOutcome<unknown>, what: string): readonly RecordedCommand[] {
  if (outcome.kind !== 'done') throw new ServiceError('conflict', `the same ${what} is under way; try again`);
  const [first, ...rest] = outcome.events;
  return first === undefined ? [] : [{ stream: streams.fleet, events: [first, ...rest] }];
}

/** A command that was only tried, as if its caller had given it now. */
function asCommandOf(
  { ids, clock }: AppliesOptions,
  { actor, requestId, token }: CommandContext,
  { stream, events: [first, ...rest] }: RecordedCommand,
): RecordedCommand {
  const id = ids.next();
  const occurred_at = timestamp(clock.now());
  const given = <E extends RecordedCommand['events'][number]>({ metadata, ...event }: E) => ({
    ...event,
    metadata: {
      ...metadata,
      command: { ...metadata.command, id },
      actor,
      request_id: requestId,
      occurred_at,
      ...(token === undefined ? {} : { token }),
    },
  });
  return { stream, events: [given(first), ...rest.map(given)] };
}

async function release(
  options: AppliesOptions,
  context: CommandContext,
  set: string,
): Promise<Omit<FleetReverted, 'notReverted'>> {
  const { gateway } = options;
  let position = options.fleet().position.value;
  const known = await acceptedBefore(options, context);
  const commands = known === undefined ? [] : [...(await commandsOfKey(options, known))];
  const all = await gateway.read((fleet) => (hasSet(fleet, set) ? ownersIn(fleet, set) : undefined));
  if (all === undefined && known === undefined) throw new ServiceError('not_found', 'no set has this name');
  const releaseId = known?.resource_id ?? options.ids.next();
  // A repeat goes on where the first request failed.
  const left = [...(all ?? [])];
  while (commands.length === 0 || left.length > 0) {
    const owners = left.splice(0, tuning.releasedAtOnce);
    const given = commands.length === 0 ? context : withoutKey(context);
    const command = { type: 'ReleaseSet', releaseId, set, owners } as const;
    try {
      const outcome = await gateway.execute(command, given, () => undefined);
      commands.push(...written(outcome, 'release'));
      ({ position } = outcome);
    } catch (error) {
      if (commands.length === 0 || !(error instanceof ServiceError)) throw error;
      throw new ServiceError(error.code, `a part of the set was released; for the rest: ${error.message}`, {
        cause: error,
      });
    }
  }
  return { commands, position };
}
