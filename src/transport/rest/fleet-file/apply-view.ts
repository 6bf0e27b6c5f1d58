/**
 * An apply as answers show it, made from its commands. Implements `docs/contract/automation.md#the-fleet-as-a-file`, apply.
 */
import { z } from 'zod';
import type { FileApplied, PlannedStep } from '../../../commands/handlers-port.js';
import { describeCommand } from '../../../domain/audit/describe.js';
import { deploymentsOf, stepsOf } from '../../../domain/fleet-file/applied.js';
import { changeWithNames, noReferences } from '../../../domain/fleet-file/naming.js';
import type { AuditEntry } from '../../../projections/port.js';
import type { RestDeps } from '../deps.js';
import { documented, sample } from '../openapi/openapi-text.js';
import { actorSchema, entrySchema } from '../resources/audit.js';
import type { DeploymentView } from '../resources/deployments.js';
import { deploymentSchema, viewsOf } from '../resources/deployments.js';
import { writtenEntry } from '../resources/written-entry.js';
import { idOf, timeOf } from '../schemas/shared-schemas.js';
import { stepSchema } from './plan-schema.js';
import type { Sections } from './sections.js';

type AppliedStepView = Omit<PlannedStep, 'final'>;

export interface AppliedView {
  readonly apply_id: string;
  readonly steps: readonly AppliedStepView[];
  readonly commands: readonly AuditEntry[];
  readonly deployments: readonly DeploymentView[];
  readonly control_psks: readonly { readonly node: string; readonly control_psk: string | null }[];
  readonly incomplete: { readonly error: string; readonly commands_left: number } | null;
}

const applied = {
  apply_id: idOf('Id of the apply', sample.command),
  steps: documented(z.array(stepSchema), 'What was done, in that order'),
  commands: documented(z.array(entrySchema), 'The audit entries; one, unless it was split'),
  deployments: documented(z.array(deploymentSchema), 'Of the chains that were deployed'),
  control_psks: documented(
    z.array(
      z
        .object({
          node: documented(z.string(), 'Name of a new node', 'edge-1'),
          control_psk: documented(
            z.string().nullable(),
            'Shown this once; null in the answer of a repeat',
            'svcpsk1_…',
          ),
        })
        .meta({ id: 'FleetControlPsk', description: 'The PSK of a new node' }),
    ),
    'Of new nodes, when they were to be issued',
  ),
  incomplete: documented(
    z
      .object({
        error: documented(z.string(), 'Why a later command was refused', 'conflict: the fleet has changed meanwhile'),
        commands_left: documented(z.int(), 'How many commands were not carried out', 1),
      })
      .nullable()
      .meta({ description: 'What is left' }),
    'What is left when a later command was refused; null when all was done',
    null,
  ),
};

export const appliedSchema: z.ZodType<AppliedView> = z
  .object(applied)
  .meta({ id: 'FleetApplied', description: 'What an apply did' });

/** An apply that was carried out before. */
interface PastApplyView extends AppliedView {
  readonly set: string | null;
  readonly at: string;
  readonly actor: AuditEntry['actor'];
  readonly reverted_by: string | null;
}

export const pastApplySchema: z.ZodType<PastApplyView> = z
  .object({
    ...applied,
    set: documented(z.string().nullable(), 'The set; null for what no set owns', 'edge-eu'),
    at: timeOf('When'),
    actor: actorSchema,
    reverted_by: documented(
      z.string().nullable(),
      'The entry that took it back, the last one if there were several; null while something of it stands that could be taken back',
      null,
    ),
  })
  .meta({ id: 'FleetApply', description: 'An apply, as it went' });

/** Made from the events that were written, so that what is committed is answered whatever the read models hold. */
export async function appliedView(
  deps: RestDeps,
  sections: Sections,
  { applyId, commands, controlPsks, incomplete }: Extract<FileApplied, { readonly kind: 'done' }>,
): Promise<AppliedView> {
  const nameOf = (type: string, id: string): string => deps.fleet.nameOf(type, id) ?? id;
  return {
    apply_id: applyId,
    steps: commands.flatMap(stepsOf).map(({ action, resource: { type, id, name }, changes }) => ({
      action,
      resource: { type, id, name: name ?? nameOf(type, id) },
      changes: changes.map((change) =>
        changeWithNames(change, sections.referenceFields.get(type) ?? noReferences, nameOf),
      ),
    })),
    commands: commands.map((command) => writtenEntry(deps, command)),
    deployments: await viewsOf(deps, commands.flatMap(deploymentsOf)),
    control_psks: controlPsks.map(({ node, controlPsk }) => ({ node, control_psk: controlPsk })),
    incomplete: incomplete && { error: incomplete.error, commands_left: incomplete.commandsLeft },
  };
}

export async function pastApplyView(
  deps: RestDeps,
  sections: Sections,
  apply: Extract<FileApplied, { readonly kind: 'done' }>,
): Promise<PastApplyView> {
  const made = await appliedView(deps, sections, apply);
  // With the names of then, which the audit keeps.
  const commands = await Promise.all(
    made.commands.map(async (entry) => (await deps.projections.audit.get(entry.id)) ?? entry),
  );
  const view = { ...made, commands };
  const [first] = commands;
  if (first === undefined) throw new Error('an apply that is found has a command');
  const revertible = apply.commands.map((command) => describeCommand(command)?.notRevertibleBecause === null);
  const reverts = view.commands.filter((_, index) => revertible[index]).map(({ reverted_by }) => reverted_by);
  return {
    ...view,
    set: apply.set,
    at: first.at,
    actor: first.actor,
    // They are taken back newest first, so the last revert is that of the first one.
    reverted_by: reverts.every((by) => by !== null) ? (reverts[0] ?? null) : null,
  };
}
