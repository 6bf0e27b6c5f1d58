/**
 * Handlers of reverts of fleet entries. They read the history of the entry's resource from the audit, then run the revert
 * as one command, and start again if the resource changed in between. The rules are in `src/domain/revert`. Implements
 * `docs/contract/domain.md#audit-and-revert`.
 */
import { resourceOf, type FleetCommand } from '../domain/fleet/resources.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { previewReverts } from '../domain/fleet-file/revert.js';
import { ownerOf, type Owner } from '../domain/references/references.js';
import {
  fieldsInTheWay,
  historiesHold,
  previewOf,
  subjectsOf,
  versionOfSubject,
  type Revert,
} from '../domain/revert/decide.js';
import {
  changes,
  deletes,
  deletesPolicy,
  movesOverride,
  movesPolicy,
  verbOf,
  type EntryAbout,
  type History,
} from '../domain/revert/history.js';
import { nodeOfPolicy, policyKey } from '../domain/listener-policy/policy.js';
import { nodeKey } from '../domain/node/node.js';
import type { Former } from '../domain/resource/lifecycle.js';
import { overriddenNode } from '../domain/settings/evolve.js';
import { yieldToEventLoop } from '../kernel/background.js';
import { ServiceError } from '../kernel/errors.js';
import { lastEvent, type RecordedCommand } from '../kernel/event.js';
import { limits } from '../kernel/limits.js';
import { createLru } from '../kernel/lru.js';
import type { FleetRevertHandlers } from './handlers-port.js';
import { inPieces } from './in-pieces.js';
import type { CommandContext, Gateway, ProjectionWait } from './port.js';
import { tuning } from './tuning.js';

/** Queries of reverts on the audit's read model. */
export interface AuditTrail {
  /** The command of an entry in its current shape; undefined when there is none, or the log no longer holds it. */
  command(entryId: string): Promise<RecordedCommand | undefined>;
  /** The entries about a resource after a log position, newest first. */
  about(type: string, id: string, behind: number): AsyncIterable<EntryAbout>;
}

export interface RevertHandlerOptions {
  readonly gateway: Gateway<Fleet, FleetCommand | Revert>;
  /** The committed fleet. */
  readonly fleet: () => Fleet;
  readonly projections: ProjectionWait;
  readonly audit: AuditTrail;
  /** Plans the rollout of a revert, if its context asks for one (`rollouts.ts`). @throws ServiceError its refusal */
  plan(revert: Revert, context: CommandContext): Promise<void>;
}

/** The present version of an entry's resource, and the fields that no longer have the entry's values. */
interface Subject {
  readonly entry: RecordedCommand;
  readonly version: number | undefined;
  readonly fields: readonly string[];
}

/** Waits until the audit holds the log up to a position. @throws ServiceError `unavailable` */
export async function auditHolds(projections: ProjectionWait, position: number): Promise<void> {
  if (await projections.reached(position, limits.rest.projectionWaitMs)) return;
  throw new ServiceError('unavailable', 'the audit of this instance is behind the log; nothing was written');
}

/** The node that a field is deleted and restored with, and whether a command did that; undefined for other fields. */
function nodeThatMoves(
  type: string,
  id: string,
  field: string,
): { readonly id: string; moves(command: RecordedCommand): boolean } | undefined {
  if (type === policyKey.type) return { id: nodeOfPolicy(id), moves: (command) => movesPolicy(command, id) };
  const overridden = overriddenNode(field);
  return overridden === undefined ? undefined : { id: overridden, moves: movesOverride };
}

/** The verbs of entries that no revert undoes or overwrites. */
const harmless: ReadonlySet<string> = new Set(['psk', 'refresh', 'command']);

/**
 * Reads histories from the audit.
 * @returns the history of a subject after `position`, that of the whole entry, which may be about other resources too
 */
function createHistories(audit: AuditTrail): (subject: Subject, position: number) => Promise<History> {
  /** Entries about several resources by resource, because the histories of all their resources need the same entries. */
  const ofSeveral = createLru<ReadonlyMap<Owner, RecordedCommand>>(tuning.entriesRemembered);

  /** The effect of an entry on one resource. */
  async function commandOf(
    { id: entryId, isAboutSeveral }: EntryAbout,
    type: string,
    id: string,
  ): Promise<RecordedCommand | undefined> {
    if (!isAboutSeveral) return audit.command(entryId);
    let subjects = ofSeveral.get(entryId);
    if (subjects === undefined) {
      const command = await audit.command(entryId);
      if (command === undefined) return undefined;
      subjects = subjectsOf(command);
      ofSeveral.set(entryId, subjects);
    }
    return subjects.get(ownerOf(type, id));
  }

  /** The newest entry that changed each field. */
  async function changersOf(
    { type, id, fields }: { readonly type: string; readonly id: string; readonly fields: readonly string[] },
    later: readonly EntryAbout[],
    behind: number,
  ): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, EntryAbout>();
    for (const one of later) {
      if (found.size === fields.length) break;
      const command = await commandOf(one, type, id);
      for (const field of fields) {
        if (!found.has(field) && command !== undefined && changes(command, field)) found.set(field, one);
      }
    }
    // A node's override and policies are deleted and restored with the node.
    for (const field of fields) {
      const node = nodeThatMoves(type, id, field);
      if (node === undefined) continue;
      const moved = await newest(nodeKey.type, node.id, found.get(field)?.position ?? behind, node.moves);
      if (moved !== undefined) found.set(field, moved);
    }
    return new Map([...found].map(([field, one]) => [field, one.id]));
  }

  /** The newest entry that deleted the resource, or its node if it belongs to one. */
  async function deleterOf(type: string, id: string, behind: number): Promise<EntryAbout | undefined> {
    const own = await newest(type, id, behind, deletes);
    if (type !== policyKey.type) return own;
    const withNode = (command: RecordedCommand): boolean => deletesPolicy(command, id);
    return (await newest(nodeKey.type, nodeOfPolicy(id), own?.position ?? behind, withNode)) ?? own;
  }

  /** The newest delete, revert or apply whose command fits. */
  async function newest(
    type: string,
    id: string,
    behind: number,
    fits: (command: RecordedCommand) => boolean,
  ): Promise<EntryAbout | undefined> {
    for await (const one of audit.about(type, id, behind)) {
      if (!['delete', 'revert', 'apply'].includes(verbOf(one.action))) continue;
      const command = await commandOf(one, type, id);
      if (command !== undefined && fits(command)) return one;
    }
    return undefined;
  }

  /** The version and the creation time of a deleted resource. */
  async function formerOf(type: string, id: string): Promise<Former> {
    let version = 0;
    let created_at = '';
    for await (const one of audit.about(type, id, -1)) {
      version += one.isAboutSeveral ? ((await commandOf(one, type, id))?.events.length ?? 0) : one.events;
      created_at = one.at;
    }
    return { version, created_at };
  }

  return async ({ entry, version, fields }, position) => {
    const { type, id } = resourceOf(entry.events[0]);
    const later: EntryAbout[] = [];
    for await (const one of audit.about(type, id, position)) if (!harmless.has(verbOf(one.action))) later.push(one);
    const history = { version, later, changedBy: await changersOf({ type, id, fields }, later, position) };
    if (deletes(entry)) return { ...history, former: await formerOf(type, id) };
    return version === undefined ? { ...history, deletedBy: await deleterOf(type, id, position) } : history;
  };
}

export function createRevertHandlers(options: RevertHandlerOptions): FleetRevertHandlers {
  const { gateway, projections } = options;
  const historyOf = createHistories(options.audit);

  /** The subjects of entries, once the audit holds their changes. */
  async function subjectsNow(entries: readonly RecordedCommand[]): Promise<readonly Subject[]> {
    const { subjects, position } = await gateway.read((fleet) => ({
      subjects: entries.map((entry) => {
        return { entry, version: versionOfSubject(fleet, entry), fields: fieldsInTheWay(fleet, entry) };
      }),
      position: fleet.position.value,
    }));
    await auditHolds(projections, position);
    return subjects;
  }

  async function historiesOf(entry: RecordedCommand): Promise<Revert['histories']> {
    const histories = new Map<Owner, History>();
    const subjects = subjectsOf(entry);
    const { position } = lastEvent(entry);
    const owners = subjects.keys();
    for (const subject of await subjectsNow([...subjects.values()])) {
      const { value: owner } = owners.next();
      if (owner !== undefined) histories.set(owner, await historyOf(subject, position));
      if (histories.size % tuning.historiesPerTurn === 0) await yieldToEventLoop();
    }
    return histories;
  }

  /** @throws ServiceError: the refusal of the last attempt */
  async function attempted<R>(entry: RecordedCommand, run: (revert: Revert) => Promise<R>): Promise<R> {
    for (let attempt = 1; ; attempt += 1) {
      const revert: Revert = { type: 'Revert', entry, histories: await historiesOf(entry) };
      try {
        return await run(revert);
      } catch (error) {
        const refused = error instanceof ServiceError && error.code === 'conflict';
        if (!refused || attempt === tuning.revertAttempts) throw error;
        const isCurrent = await gateway.read((fleet) => historiesHold(fleet, revert));
        if (isCurrent) throw error;
      }
    }
  }

  return {
    historiesOf,
    revert(context, entry, ofRollout) {
      const { type, id } = resourceOf(entry.events[0]);
      const reverting = { ...context, revertOf: entry.events[0].metadata.command.id };
      return attempted(entry, (revert) =>
        gateway.execute(ofRollout === undefined ? revert : { ...revert, ofRollout }, reverting, (fleet) => ({
          name: fleet.nameOf(type, id) ?? null,
        })),
      );
    },
    preview: (entry, context) =>
      attempted(entry, async (revert) => {
        const changes = await inPieces(options.fleet, function* preview(fleet) {
          const commands = yield* previewReverts(fleet, [revert]);
          if (!commands.ok) throw new ServiceError(commands.error.code, commands.error.message);
          return commands.value.flatMap((command) => previewOf(fleet, command));
        });
        if (context !== undefined) await options.plan(revert, context);
        return changes;
      }),
  };
}
