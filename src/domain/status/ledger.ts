/**
 * What was told last of each resource: the fold of `svc-status`, and of those commands that make a resource count as well.
 * A resource without an entry has the status that `impliedStatus` says. Pure; `src/status/ledger.ts` keeps it in memory.
 * Implements `docs/contract/notices.md#status-changes-are-facts`.
 */
import { limits } from '../../kernel/limits.js';
import type { FleetEvent } from '../fleet/resources.js';
import type { StatusFact } from './facts.js';
import { impliedStatus, isBad, type StatusKey } from './status.js';

/** The last fact of a resource, or what a command has made of it. */
export interface LastFact extends Omit<StatusFact, 'again'> {
  /** When it was written, RFC 3339; later than its change when it was written again. */
  readonly at: string;
  /** When the newest changes were told, milliseconds since the epoch, oldest first: for the budget. */
  readonly toldAt: readonly number[];
  /** A command has ended the incident, and no fact says so yet. */
  readonly isUnwritten?: true;
}

/** @param at when the fact was written, RFC 3339 */
export function afterFact(before: LastFact | undefined, fact: StatusFact, at: string): LastFact {
  const { again, ...now } = fact;
  const told = before?.toldAt ?? [];
  const toldAt = again === true ? told : [...told, Date.parse(at)].slice(-limits.status.perResource.changes);
  return { ...now, at, toldAt };
}

/** What counts after a command that makes a resource well; undefined where nothing of an incident is left to say. @param at RFC 3339 */
export function afterCommand(last: LastFact, at: string): LastFact | undefined {
  if (openIncident(last) === null) return undefined;
  const status = impliedStatus(last.resource.type);
  return { ...last, was: last.status, status, since: at, reason: null, isUnwritten: true };
}

/** The incident that lasts on after the fact. */
export const openIncident = ({ resource, status, incident }: Pick<LastFact, 'resource' | 'status' | 'incident'>) =>
  isBad(resource.type, status) ? incident : null;

/**
 * The resource that counts as well after an event, because it is gone, disabled, no longer deployed, or has a new
 * certificate; undefined after any other event.
 */
export function wellBy({ type, data }: FleetEvent): StatusKey | undefined {
  switch (type) {
    case 'NodeDeleted':
      return { type: 'node', id: data.node_id };
    case 'ChainDeleted':
      return { type: 'l4_chain', id: data.chain_id };
    case 'ChainUpdated':
      return data.changes['enabled']?.to === false ? { type: 'l4_chain', id: data.chain_id } : undefined;
    case 'ChainDeployed':
      return data.definition.to === null ? { type: 'l4_chain', id: data.chain_id } : undefined;
    case 'UpstreamDeleted':
      return { type: 'l4_upstream', id: data.upstream_id };
    case 'UpstreamUpdated':
      return data.changes['enabled']?.to === false ? { type: 'l4_upstream', id: data.upstream_id } : undefined;
    case 'CredentialDeleted':
      return { type: 'credential', id: data.credential_id };
    case 'CredentialUpdated':
      return data.changes['certificate'] === undefined ? undefined : { type: 'credential', id: data.credential_id };
    default:
      return undefined;
  }
}
