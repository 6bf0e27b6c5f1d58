/** What the palette can do besides opening pages, each action for the roles that the service allows. */
import { auditQuery } from '../audit/audit.js';
import { auditSearch } from '../audit/audit-search.js';
import { saveAudit } from '../audit/save-audit.js';
import { saveFleet } from '../fleet-file/save-fleet.js';
import { queryClient } from '../shared/live/queries.js';
import { signOut, type Role } from '../shared/session.js';
import { sayDone } from '../shared/ui/done.js';
import type { ResourceLinkTarget } from '../shared/ui/resource-link.js';
import { text } from './shell.text.js';

export interface Action {
  readonly label: string;
  readonly role?: Role;
  /** @returns where to go on, if anywhere. @throws Refusal */
  readonly run: () => Promise<ResourceLinkTarget | void>;
}

const anything = auditSearch({});

/** The newest change that can be taken back; its page shows what that would do. */
async function lastChange(): Promise<ResourceLinkTarget> {
  const { items } = await queryClient.fetchQuery({ ...auditQuery(anything), staleTime: 0 });
  const last = items.find(({ revertible, reverted_by: by }) => revertible && by === null);
  if (last === undefined) sayDone(text.nothingToUndo);
  return { to: '/audit', ...(last !== undefined && { search: { entry: last.id } }) };
}

export const otherActions: readonly Action[] = [
  { label: text.undoLast, role: 'operator', run: lastChange },
  { label: text.exportAudit('CSV'), run: () => saveAudit(anything, 'csv') },
  { label: text.exportAudit('JSON'), run: () => saveAudit(anything, 'json') },
  { label: text.exportFleet, run: async () => void (await saveFleet()) },
  { label: text.signOut, run: signOut },
];
