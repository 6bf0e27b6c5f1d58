/**
 * What was told last of each resource: the fold of `svc-status`, and of the commands after which a resource counts as
 * being well. A resource without an entry has the status that `impliedStatus` says. Pure; `src/status/ledger.ts` keeps
 * it in memory. Implements `docs/contract/notices.md#status-changes-are-facts`.
 */
import { limits } from '../../kernel/limits.js';
import type { FleetEvent } from '../fleet/resources.js';
import type { StatusFact } from './facts.js';
import { impliedStatus, isBad, type StatusKey, type StatusType } from './status.js';

/** The last fact of a resource, or what a command has made of it. */
export interface LastFact extends Omit<StatusFact, 'again'> {
  /** When it was written, RFC 3339; later than its change when it was written again. */
  readonly at: string;
  /** When the newest changes were told, milliseconds since the epoch, oldest first: for the budget. */
  readonly toldAt: readonly number[];
  /** A command has ended the incident, and no fact says so yet. */
  readonly isUnwritten?: true;
  /** That command, or the one that this fact follows, has deleted the resource. */
  readonly isGone?: true;
}

/** @param at when the fact was written, RFC 3339 */
export function afterFact(before: LastFact | undefined, fact: StatusFact, at: string): LastFact {
  const { again, ...now } = fact;
  const isGone = before?.isGone === true && openIncident(fact) === null;
  const told = before?.toldAt ?? [];
  const toldAt = again === true ? told : [...told, Date.parse(at)].slice(-limits.status.perResource.changes);
  return { ...now, at, toldAt, ...(isGone && { isGone: true }) };
}

/** The entry after a command that makes a resource well; undefined if no incident was open. @param at RFC 3339 */
export function afterCommand(last: LastFact, { isGone }: Well, at: string): LastFact | undefined {
  if (openIncident(last) === null) return undefined;
  const status = impliedStatus(last.resource.type);
  return {
    ...last,
    was: last.status,
    status,
    since: at,
    reason: null,
    isUnwritten: true,
    ...(isGone && { isGone: true }),
  };
}

/** The incident that is still open after the fact. */
export const openIncident = ({ resource, status, incident }: Pick<LastFact, 'resource' | 'status' | 'incident'>) =>
  isBad(resource.type, status) ? incident : null;

interface Well {
  readonly key: StatusKey;
  readonly isGone: boolean;
}

const well = (type: StatusType, id: string): Well => ({ key: { type, id }, isGone: false });
const gone = (type: StatusType, id: string): Well => ({ key: { type, id }, isGone: true });

/**
 * The resource that counts as being well after an event, because it is gone, disabled, no longer deployed, or has a new
 * certificate; undefined after any other event.
 */
export function wellBy({ type, data }: FleetEvent): Well | undefined {
  switch (type) {
    case 'NodeDeleted':
      return gone('node', data.node_id);
    case 'ChainDeleted':
      return gone('l4_chain', data.chain_id);
    case 'ChainUpdated':
      return data.changes['enabled']?.to === false ? well('l4_chain', data.chain_id) : undefined;
    case 'ChainDeployed':
      return data.definition.to === null ? well('l4_chain', data.chain_id) : undefined;
    case 'UpstreamDeleted':
      return gone('l4_upstream', data.upstream_id);
    case 'UpstreamUpdated':
      return data.changes['enabled']?.to === false ? well('l4_upstream', data.upstream_id) : undefined;
    case 'CredentialDeleted':
      return gone('credential', data.credential_id);
    case 'CredentialUpdated':
      return data.changes['certificate'] === undefined ? undefined : well('credential', data.credential_id);
    default:
      return undefined;
  }
}
