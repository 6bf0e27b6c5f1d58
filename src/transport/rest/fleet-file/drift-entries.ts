/**
 * Finds who changed the fields that have drifted: the newest audit entry about each. Bounded, and empty while the audit is
 * unavailable. Implements `docs/contract/automation.md#the-fleet-as-a-file`, drift.
 */
import { auditOfFleetEvent } from '../../../domain/audit/describe.js';
import type { DriftedResource } from '../../../domain/fleet-file/drift.js';
import type { DriftBase } from '../../../domain/fleet-set/declaration.js';
import { nodeOfPolicy, policyKey } from '../../../domain/listener-policy/policy.js';
import { nodeKey } from '../../../domain/node/node.js';
import { commandAbout, movesOverride, movesPolicy } from '../../../domain/revert/history.js';
import { overriddenNode } from '../../../domain/settings/evolve.js';
import { ServiceError } from '../../../kernel/errors.js';
import type { RecordedCommand } from '../../../kernel/event.js';
import type { RestDeps } from '../deps.js';
import { tuning } from '../tuning.js';

type Entries = ReadonlyMap<string, string>;

/** For each drifted resource, the entries by the paths of its changes; an empty map where none is known. */
export async function changersOf(
  deps: Pick<RestDeps, 'projections'>,
  base: DriftBase | undefined,
  drift: readonly DriftedResource[],
): Promise<readonly Entries[]> {
  const found: Entries[] = [];
  const asked = drift.slice(0, tuning.driftedLookedUp);
  try {
    for (let from = 0; from < asked.length; from += tuning.driftedAtOnce) {
      const some = asked.slice(from, from + tuning.driftedAtOnce);
      found.push(...(await Promise.all(some.map((one) => entriesFor(deps, base?.revision ?? -1, one)))));
    }
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'unavailable') throw error;
  }
  return found;
}

/** @param behind the revision of the base */
async function entriesFor(
  { projections: { auditTrail } }: Pick<RestDeps, 'projections'>,
  behind: number,
  { resource: { type, id }, changes }: DriftedResource,
): Promise<Entries> {
  const wanted = new Set(changes.map(({ path }) => path));
  const found = new Map<string, string>();
  const search = async (about: { type: string; id: string }, does: (c: RecordedCommand, path: string) => boolean) => {
    let looked = 0;
    for await (const entry of auditTrail.about(about.type, about.id, -1)) {
      if (wanted.size === 0 || looked === tuning.driftEntries) return;
      looked += 1;
      const command = await auditTrail.command(entry.id);
      if (command === undefined || command.events[0].revision <= behind) return;
      for (const path of wanted) {
        if (!does(command, path)) continue;
        found.set(path, entry.id);
        wanted.delete(path);
      }
    }
  };
  await search({ type, id }, (command, path) => changesPath(command, id, path));
  // Deleting a node also deletes its policies and its override in the settings.
  if (wanted.size > 0 && type === policyKey.type)
    await search({ type: nodeKey.type, id: nodeOfPolicy(id) }, (command) => movesPolicy(command, id));
  for (const path of wanted) {
    const nodeId = overriddenNode(path);
    if (nodeId !== undefined)
      await search({ type: nodeKey.type, id: nodeId }, (command, of) => of === path && movesOverride(command));
  }
  return found;
}

const deployed = 'deployed.';

function changesPath(command: RecordedCommand, id: string, path: string): boolean {
  const about = commandAbout(command, id) ?? command;
  return about.events.some((event) => {
    const isDeploy = event.type === 'ChainDeployed';
    if (isDeploy !== path.startsWith(deployed)) return false;
    const wanted = rootOf(isDeploy ? path.slice(deployed.length) : path);
    return auditOfFleetEvent(event).changes.some((change) => rootOf(change.path) === wanted);
  });
}

/** A label, or an override of a node, is a field of its own. */
const rootOf = (path: string): string => (/^(?:labels|nodes)\./.test(path) ? path : path.replace(/[.[].*$/s, ''));
