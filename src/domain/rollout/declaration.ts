/** The declaration of rollouts: no command creates, updates or deletes one, and reverts of their entries end them. */
import { eventAudit, type AuditVerb } from '../resource/audit-change.js';
import { onRecord, type EventDeclarations, type Resource } from '../resource/declaration.js';
import { decideRollout } from './decide.js';
import { evolveRollout } from './evolve.js';
import type { RolloutCommand, RolloutEvent, RolloutState, RolloutStepName } from './rollout.js';

/** The verbs of the steps that people take. The other events have `release`, which no entry shows. */
const verbs: { readonly [S in RolloutStepName]?: AuditVerb } = {
  pause: 'pause',
  resume: 'resume',
  advance: 'advance',
  complete: 'complete',
};

export const rollout: Resource<'rollout', 'Rollout', 'rollout', RolloutState, RolloutEvent, RolloutCommand> = {
  type: 'rollout',
  noun: 'Rollout',
  singular: 'rollout',
  fields: [],
  decide: decideRollout,
  evolve: evolveRollout,
  indexed: null,
  compiled: null,
  events: {
    // Its entry is the change itself, whose revert ends the rollout.
    RolloutStarted: { audit: () => eventAudit('release', []), ...onRecord },
    RolloutStepped: {
      audit({ data: { step, was, state } }) {
        const verb = verbs[step];
        if (verb === undefined) return eventAudit('release', []);
        const because = 'a step of a rollout is not taken back; revert the entry of its change instead';
        return eventAudit(verb, [{ path: 'state', before: was, after: state }], because);
      },
      ...onRecord,
    },
    RolloutClockSet: { audit: () => eventAudit('release', []), ...onRecord },
  } satisfies EventDeclarations<RolloutEvent>,
};
