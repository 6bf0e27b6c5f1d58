/**
 * The audit entry of a command that was just written, made from its events, so that the answer waits for no read model.
 * `audit.ts` finds earlier entries. Implements `docs/contract/rest.md#audit`.
 */
import { describeCommand, namedBy } from '../../../domain/audit/describe.js';
import { yieldToEventLoop } from '../../../kernel/background.js';
import type { RecordedCommand } from '../../../kernel/event.js';
import { loggedEntry, revertState } from '../../../projections/models/audit-entry.js';
import type { AuditEntry } from '../../../projections/port.js';
import type { RestDeps } from '../deps.js';

/** The entries of several commands, each of which may be about hundreds of resources. */
export async function writtenEntries(
  deps: Pick<RestDeps, 'fleet'>,
  commands: readonly RecordedCommand[],
): Promise<readonly AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for (const command of commands) {
    entries.push(writtenEntry(deps, command));
    await yieldToEventLoop();
  }
  return entries;
}

/** @param name of the command's own resource, when it is known; the events and the fleet have the others */
export function writtenEntry(
  { fleet }: Pick<RestDeps, 'fleet'>,
  command: RecordedCommand,
  name: string | null = null,
): AuditEntry {
  const entry = describeCommand(command);
  if (entry === null) throw new Error('every command of a request has an audit entry');
  const named = command.events.flatMap((event) => namedBy(event) ?? []);
  const nameThen = (type: string, id: string | null): string | null => {
    if (id === null) return null;
    if (name !== null && id === entry.resource.id) return name;
    return named.find((one) => one.type === type && one.id === id)?.name ?? fleet.nameOf(type, id) ?? null;
  };
  const logged = loggedEntry(command, entry, nameThen);
  return {
    ...logged,
    ...revertState(entry.notRevertibleBecause, fleet.revertOf(logged.id) ?? null),
    confirm: fleet.confirmationOf(logged.id),
  };
}
