/** The declaration of confirmations: they come with the commands that they are about. */
import { eventAudit } from '../resource/audit-change.js';
import { onRecord, type EventDeclarations, type Resource } from '../resource/declaration.js';
import type { ConfirmationCommand, ConfirmationEvent, ConfirmationState } from './confirmation.js';
import { decideConfirmation, evolveConfirmation } from './decide.js';

export const confirmation: Resource<
  'confirmation',
  'Confirmation',
  'confirmation',
  ConfirmationState,
  ConfirmationEvent,
  ConfirmationCommand
> = {
  type: 'confirmation',
  noun: 'Confirmation',
  singular: 'confirmation',
  fields: [],
  decide: decideConfirmation,
  evolve: evolveConfirmation,
  indexed: null,
  compiled: null,
  events: {
    ConfirmationAsked: { audit: () => eventAudit('confirm', []), ...onRecord },
    ConfirmationEnded: {
      audit({ data: { entry_id, how } }) {
        const change = { path: 'state', before: 'waiting', after: how };
        const entry = { path: 'entry_id', before: null, after: entry_id };
        const changes = how === 'confirmed' ? [entry, change] : [];
        return eventAudit('confirm', changes, 'what was confirmed stays so; revert the entry of its change instead');
      },
      ...onRecord,
    },
    ConfirmationClockSet: { audit: () => eventAudit('confirm', []), ...onRecord },
  } satisfies EventDeclarations<ConfirmationEvent>,
};
