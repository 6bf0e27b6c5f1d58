/**
 * Commands that may start a rollout, as their context asks; their dry runs; and the steps that people take. The rules are in
 * `src/domain/rollout-start` and `src/domain/rollout`. Implements `docs/contract/rollouts.md#starting-one` and `#running`.
 */
import { confirmationKey } from '../domain/confirmation/confirmation.js';
import { draftFleet, type Fleet } from '../domain/fleet/fleet.js';
import { hypothetical } from '../domain/fleet/hypothetical.js';
import { rolloutKey, type Observe, type RolloutCommand } from '../domain/rollout/rollout.js';
import type { RolloutPlan, WithRollout } from '../domain/rollout-start/start.js';
import { noPolicy } from '../domain/rollout-policy/rollout-policy.js';
import { settingsOf } from '../domain/settings/settings.js';
import type { Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import type { RecordedCommand } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import { fleetAggregate, type DecidedOnFleet, type RolledOut } from './aggregate.js';
import type { CommandHandlers, FleetRevertHandlers, RolloutVerb } from './handlers-port.js';
import { inPieces } from './in-pieces.js';
import type { CommandContext, Gateway, ProjectionWait, RolloutAsked } from './port.js';
import { measured, unmarkedEvents } from './proposal.js';
import { present } from './resources.js';
import { auditHolds, type AuditTrail } from './revert.js';

export const nothingPlanned: RolloutPlan = { rolloutId: null, waves: [], warnings: [] };

/** Ends a dry run, whose answer is the plan alone. Not a refusal. */
export class OnlyPlanned extends Error {
  readonly plan: RolloutPlan;

  constructor(plan: RolloutPlan) {
    super('a dry run writes nothing');
    this.name = 'OnlyPlanned';
    this.plan = plan;
  }
}

export interface RolloutOptions {
  readonly gateway: Gateway<Fleet, DecidedOnFleet>;
  /** The committed fleet. */
  readonly fleet: () => Fleet;
  readonly observe: Observe;
  readonly clock: Clock;
  readonly ids: Ids;
}

export interface RolloutCommands {
  /** The gateway, which rolls out the commands whose contexts ask for it. */
  readonly gateway: Gateway<Fleet, RolledOut>;
  /** Plans a command, if its context asks. @throws ServiceError the refusal that the command would get */
  plan(command: RolledOut, context: CommandContext): Promise<void>;
}

/** @throws ServiceError `conflict`, when several commands would be rolled out @param what for the sentence */
export function refuseSeveral(fleet: Fleet, asked: RolloutAsked | undefined, what: string): void {
  if (asked?.confirm?.by === 'manual') {
    throw new ServiceError('conflict', `${what} takes more than one command, which nobody can confirm as one`);
  }
  const policy = asked?.policy ?? settingsOf(fleet).rollout_policy;
  if (asked === undefined || policy === null || policy === noPolicy) return;
  throw new ServiceError(
    'conflict',
    `${what} takes more than one command, which cannot be one rollout; say rollout=none`,
  );
}

export function createRolloutCommands({ gateway, fleet, observe, clock, ids }: RolloutOptions): RolloutCommands {
  const rolled = (
    command: RolledOut,
    { policy, confirm }: RolloutAsked,
    planned: RolloutAsked['planned'],
  ): WithRollout<RolledOut> => ({
    type: 'WithRollout',
    command,
    policy,
    rolloutId: ids.next(),
    confirm,
    observe,
    planned,
  });

  /** The plan that a command would get. @throws ServiceError its refusal */
  function tried(command: RolledOut, context: CommandContext, asked: RolloutAsked): Promise<RolloutPlan | undefined> {
    let plan: RolloutPlan | undefined;
    const request = rolled(command, asked, (next) => (plan = next));
    return inPieces(fleet, function* dryRun(on) {
      const decision = yield* fleetAggregate.decide(on, request);
      if (!decision.ok) throw new ServiceError(decision.error.code, decision.error.message);
      if (decision.value.length === 0) return plan;
      measured(unmarkedEvents(decision.value, context, clock, ids));
      const { state } = draftFleet(on);
      const { refusal } = yield* fleetAggregate.apply(state, hypothetical(state, decision.value));
      if (refusal !== undefined) throw new ServiceError(refusal.code, refusal.message);
      return plan;
    });
  }

  return {
    gateway: {
      ...gateway,
      async execute(command, context, select) {
        const asked = context.rollout;
        if (asked === undefined) return gateway.execute(command, context, select);
        if (asked.dryRun) throw new OnlyPlanned((await tried(command, context, asked)) ?? nothingPlanned);
        const outcome = await gateway.execute(rolled(command, asked, asked.planned), context, select);
        const before = outcome.kind === 'repeated' ? outcome.command?.events.at(-1) : undefined;
        if (before?.type === 'RolloutStarted') {
          asked.planned({ ...nothingPlanned, rolloutId: String(before.data['rollout_id']) });
        }
        return outcome;
      },
    },
    async plan(command, context) {
      if (context.rollout !== undefined) context.rollout.planned(await tried(command, context, context.rollout));
    },
  };
}

interface StepOptions {
  readonly gateway: Gateway<Fleet, RolledOut>;
  /** The committed fleet. */
  readonly fleet: () => Fleet;
  readonly observe: Observe;
  readonly projections: ProjectionWait;
  readonly audit: Pick<AuditTrail, 'command'>;
  readonly reverts: Pick<FleetRevertHandlers, 'revert'>;
}

const commandOf: { readonly [V in RolloutVerb]: (id: string, observe: Observe) => RolloutCommand } = {
  pause: (id) => ({ type: 'PauseRollout', id }),
  resume: (id) => ({ type: 'ResumeRollout', id }),
  advance: (id, observe) => ({ type: 'AdvanceRollout', id, observe }),
  complete: (id) => ({ type: 'CompleteRollout', id }),
};

export function createRolloutHandlers(options: StepOptions): CommandHandlers['rollouts'] {
  const { gateway, fleet, observe, audit, projections, reverts } = options;

  async function commandOfEntry(id: string): Promise<RecordedCommand> {
    await auditHolds(projections, fleet().position.value);
    const entry = await audit.command(id);
    if (entry === undefined) throw new Error('the audit does not have the entry of a rollout or a confirmation');
    return entry;
  }

  return {
    step: (context, id, verb) =>
      gateway.execute(commandOf[verb](id, observe), context, (fleet) => present(fleet.get(rolloutKey, id))),
    async revert(context, id) {
      const rollout = await gateway.read((fleet) => fleet.get(rolloutKey, id));
      if (rollout === undefined) throw new ServiceError('not_found', `there is no rollout ${id}`);
      const { entry_id } = rollout;
      if (entry_id === null) throw new ServiceError('conflict', 'the rollout of an upgrade cannot be reverted');
      return reverts.revert(context, await commandOfEntry(entry_id), true);
    },
    confirm(context, entryId) {
      const id = fleet().idOfName(confirmationKey.type, entryId);
      if (id === undefined) throw new ServiceError('conflict', 'nobody was asked to confirm the change of this entry');
      return gateway.execute({ type: 'ConfirmChange', id }, context, () => undefined);
    },
    revertUnconfirmed: async (context, { name }) => reverts.revert(context, await commandOfEntry(name)),
  };
}
