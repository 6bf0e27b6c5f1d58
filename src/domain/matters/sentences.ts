/**
 * A matter as one sentence: what is wrong, with what, and why. Names stand in quotes, as in the reasons of a chain's health.
 * Pure. Implements `docs/contract/rest.md#dashboard`, `matters`.
 */
import { unreachable } from '../../kernel/errors.js';
import type { Cause } from '../chain/health.js';
import type { MatterKind } from './matters.js';

interface Told {
  readonly kind: MatterKind;
  readonly cause: Cause | null;
  readonly count: number;
  /** The name of the first resource, and why it is here. */
  readonly first: string;
  readonly reason: string;
  /** The number of resources that have caused it together; 0 for one cause, or none. */
  readonly others: number;
}

/** A sentence without its full stop. */
export function sentenceOf({ kind, cause, count, first, reason, others }: Told): string {
  const chains = count === 1 ? `Chain "${first}"` : `${count} chains`;
  const be = count === 1 ? 'is' : 'are';
  const one = count === 1;
  switch (kind) {
    case 'chain_down':
    case 'chain_degraded':
      return `${chains} ${be} ${kind === 'chain_down' ? 'down' : 'degraded'}${because(cause, others)}`;
    case 'chain_unknown':
      return one ? `Nobody knows whether chain "${first}" works: ${reason}` : `Nobody knows whether ${chains} work`;
    case 'certificate_ended':
      return one ? `Certificate "${first}" has ended and is in use` : `${count} certificates have ended and are in use`;
    case 'certificate_ending':
      return one ? `Certificate "${first}" ends within 30 days` : `${count} certificates end within 30 days`;
    case 'node_offline':
      return one ? `Node "${first}" is offline` : `${count} nodes are offline`;
    case 'node_rejected':
      return `${one ? `Node "${first}" has` : `${count} nodes have`} rejected the newest configuration`;
    case 'listener_missing':
      return one ? `Node "${first}": ${reason}` : `${count} nodes do not run all that is deployed on them`;
    case 'unexpected_listener':
      return one ? `Node "${first}": ${reason}` : `${count} nodes run listeners that are not deployed`;
    case 'upstream_unhealthy':
      return one ? `Upstream "${first}" is unhealthy` : `${count} upstreams are unhealthy`;
    case 'webhook_stopped':
      return one ? `Webhook "${first}" has stopped` : `${count} webhooks have stopped`;
    case 'chain_modified':
      return `${chains} ${one ? 'was' : 'were'} edited and not deployed since`;
    default:
      return unreachable(kind);
  }
}

function because(cause: Cause | null, others: number): string {
  if (cause === null) return '';
  return ` because ${others > 1 ? severalOf(cause, others) : oneOf(cause)}`;
}

function oneOf({ kind, resource, detail }: Cause): string {
  const name = `"${resource.name}"`;
  switch (kind) {
    case 'node_offline':
      return `node ${name} is offline`;
    case 'node_rejected':
      return `node ${name} has rejected its newest configuration`;
    case 'listener_missing':
      return `listener ${detail} of node ${name} does not run`;
    case 'target_unusable':
      return `node ${name} cannot use the REALITY target of ${detail}`;
    case 'upstream_unhealthy':
      return `upstream ${name} is unhealthy`;
    case 'upstream_disabled':
      return `upstream ${name} is disabled`;
    case 'link_loss':
      return `the link from ${name} to "${detail}" loses too much`;
    case 'apply_behind':
      return `node ${name} has not applied its newest configuration yet`;
    default:
      return unreachable(kind);
  }
}

function severalOf({ kind }: Cause, count: number): string {
  switch (kind) {
    case 'node_offline':
      return `${count} more nodes are offline`;
    case 'node_rejected':
      return `${count} more nodes have rejected their newest configuration`;
    case 'listener_missing':
      return `${count} more listeners do not run`;
    case 'target_unusable':
      return `${count} more REALITY targets cannot be used`;
    case 'upstream_unhealthy':
      return `${count} more upstreams are unhealthy`;
    case 'upstream_disabled':
      return `${count} more upstreams are disabled`;
    case 'link_loss':
      return `${count} more links lose too much`;
    case 'apply_behind':
      return `${count} more nodes have not applied their newest configuration yet`;
    default:
      return unreachable(kind);
  }
}
