/** An apply in answers, made from its commands. Implements `docs/contract/automation.md#the-fleet-as-a-file`, apply. */
import { z } from 'zod';
import type { FileApplied, PlannedStep } from '../../../commands/fleet-file-port.js';
import { deploymentsOf, stepsOf, type AppliedStep, type Deployment } from '../../../domain/fleet-file/applied.js';
import { changeWithNames, noReferences } from '../../../domain/fleet-file/naming.js';
import { nameOfPolicy, policyKey } from '../../../domain/listener-policy/policy.js';
import { nodeKey } from '../../../domain/node/node.js';
import { yieldToEventLoop } from '../../../kernel/background.js';
import type { RecordedCommand } from '../../../kernel/event.js';
import { limits } from '../../../kernel/limits.js';
import type { AuditEntry } from '../../../projections/port.js';
import { warningsOf } from '../../../reports/status.js';
import type { RestDeps } from '../deps.js';
import { component, documented, sample } from '../schemas/documented.js';
import { actorSchema, entrySchema, shownEntry } from '../resources/audit.js';
import { deploymentSchema, viewsOf } from '../resources/deployments.js';
import { warningsSchema } from '../resources/warnings.js';
import { writtenEntry } from '../resources/written-entry.js';
import { idOf, timeOf } from '../schemas/shared-schemas.js';
import { stepSchema } from './plan-schema.js';
import type { Shown } from '../answers/envelope.js';
import type { Sections } from './sections.js';

const applied = {
  apply_id: idOf('Id of the apply', sample.command),
  steps: documented(
    z.array(stepSchema),
    `What was done, in that order; ${limits.fleetFile.steps} of it, those behind them by \`page\``,
  ),
  steps_total: documented(z.int(), 'Number of steps on all pages', 1),
  commands: documented(z.array(entrySchema), 'The audit entries; one, unless the apply was split'),
  deployments: documented(z.array(deploymentSchema), 'Deployments of these steps'),
  warnings: warningsSchema,
  control_psks: documented(
    z.array(
      component('FleetControlPsk', 'The PSK of a new node', {
        node: documented(z.string(), 'Name of a new node', 'edge-1'),
        control_psk: documented(z.string().nullable(), 'Shown only once; null for a repeat', 'svcpsk1_…'),
      }),
    ),
    'PSKs of new nodes, with `issue_psks`',
  ),
  incomplete: documented(
    z
      .object({
        error: documented(z.string(), 'Why a later command was refused', 'conflict: the fleet has changed meanwhile'),
        commands_left: documented(z.int(), 'Number of commands that were not carried out', 1),
      })
      .nullable()
      .meta({ description: 'The rest of an apply' }),
    'The rest of the apply when a later command was refused; null when it is complete',
    null,
  ),
};

export const appliedSchema = component('FleetApplied', 'The result of an apply', applied);

/** An apply that was carried out before. */
export const pastApplySchema = component('FleetApply', 'A past apply', {
  ...applied,
  set: documented(z.string().nullable(), 'The set; null for what no set owns', 'edge-eu'),
  at: timeOf('When'),
  actor: actorSchema,
  reverted_by: documented(
    z.string().nullable(),
    'The entry that reverted it, the last of several; null while a part of it could still be reverted',
    null,
  ),
});

/**
 * The result of an apply, made from its events: a committed apply is answered whatever the read models hold.
 * @param page of its steps
 */
export async function appliedView(
  deps: RestDeps,
  sections: Sections,
  { applyId, commands, controlPsks, incomplete }: Extract<FileApplied, { readonly kind: 'done' }>,
  page = 1,
  entryOf = (command: RecordedCommand): AuditEntry | Promise<AuditEntry> => writtenEntry(deps, command),
): Promise<Shown<typeof appliedSchema>> {
  const [from, to] = [(page - 1) * limits.fleetFile.steps, page * limits.fleetFile.steps];
  const steps: PlannedStep[] = [];
  const deployments: Deployment[] = [];
  const entries: AuditEntry[] = [];
  let total = 0;
  for (const command of commands) {
    const some = stepsOf(command);
    const shown = some.slice(Math.max(0, from - total), Math.max(0, to - total)).map((step) => stepView(step()));
    const deployed = new Set(shown.flatMap(({ action, resource: { id } }) => (action === 'deploy' ? [id] : [])));
    if (deployed.size > 0) deployments.push(...deploymentsOf(command).filter(({ chain_id: id }) => deployed.has(id)));
    steps.push(...shown);
    total += some.length;
    entries.push(await entryOf(command));
    await yieldToEventLoop();
  }
  return {
    apply_id: applyId,
    steps,
    steps_total: total,
    commands: entries,
    deployments: viewsOf(deps, deployments),
    warnings: warningsOf(deps, await deps.fleet.needsOfEvents(commands.flatMap(({ events }) => events))),
    control_psks: controlPsks.map(({ node, controlPsk }) => ({ node, control_psk: controlPsk })),
    incomplete: incomplete && { error: incomplete.error, commands_left: incomplete.commandsLeft },
  };

  function stepView({ action, resource: { type, id, name }, changes }: AppliedStep): PlannedStep {
    const nameOf = (of: string, one: string): string => deps.fleet.nameOf(of, one) ?? one;
    const nameOfNode = (node: string): string => nameOf(nodeKey.type, node);
    const fields = sections.referenceFields.get(type) ?? noReferences;
    return {
      action,
      resource: { type, id, name: type === policyKey.type ? nameOfPolicy(id, nameOfNode) : (name ?? nameOf(type, id)) },
      changes: changes.map((change) => changeWithNames(change, fields, nameOf)),
    };
  }
}

export async function pastApplyView(
  deps: RestDeps,
  sections: Sections,
  apply: Extract<FileApplied, { readonly kind: 'done' }>,
  page?: number,
): Promise<Shown<typeof pastApplySchema>> {
  const made = await appliedView(deps, sections, apply, page, async (command) => {
    // The audit keeps the names of that time.
    const kept = await deps.projections.audit.get(command.events[0].metadata.command.id);
    return kept === undefined ? writtenEntry(deps, command) : shownEntry(deps, kept);
  });
  const { commands } = made;
  const [first] = commands;
  if (first === undefined) throw new Error('every apply has a command');
  const reverts = commands
    .filter(({ revertible, reverted_by: by }) => revertible || by !== null)
    .map(({ reverted_by: by }) => by);
  return {
    ...made,
    set: apply.set,
    at: first.at,
    actor: first.actor,
    // Commands are reverted newest first, so the revert of the first one is the last.
    reverted_by: reverts.every((by) => by !== null) ? (reverts[0] ?? null) : null,
  };
}
