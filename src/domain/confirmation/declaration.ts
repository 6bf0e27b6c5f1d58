/** The declaration of confirmations: they come with the commands that they are about, and are no entries of their own. */
import { eventAudit } from '../resource/audit-change.js';
import type { EventDeclarations, Resource } from '../resource/declaration.js';
import type { ConfirmationEvent, ConfirmationState } from './confirmation.js';

export const confirmation: Resource<
  'confirmation',
  'Confirmation',
  'confirmation',
  ConfirmationState,
  ConfirmationEvent,
  never
> = {
  type: 'confirmation',
  noun: 'Confirmation',
  singular: 'confirmation',
  fields: [],
  decide: {},
  // The nodes' own needs are in the fold (`fleet/apply.ts`).
  evolve: (state) => state,
  indexed: null,
  compiled: null,
  objectionTo: null,
  events: {
    ConfirmationAsked: { audit: () => eventAudit('confirm', []), undo: null, touches: () => [] },
  } satisfies EventDeclarations<ConfirmationEvent>,
};
