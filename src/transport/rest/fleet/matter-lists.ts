/**
 * The path and query of the list that shows the resources of a matter, and possibly more. Implements
 * `docs/contract/rest.md#dashboard`, `filter`.
 */
import type { Matter } from '../../../domain/matters/matters.js';
import { unreachable } from '../../../kernel/errors.js';
import { limits } from '../../../kernel/limits.js';

/** @param now RFC 3339 @returns null when no list shows them */
export function listOf({ kind, causedBy }: Matter, now: string): string | null {
  switch (kind) {
    case 'chain_down':
      return chains({ health: 'down' }, causedBy);
    case 'chain_degraded':
      return chains({ health: 'degraded' }, causedBy);
    case 'chain_unknown':
      return chains({ health: 'unknown' }, null);
    case 'chain_modified':
      return chains({ status: 'modified' }, null);
    case 'certificate_ended':
      return list('/api/credentials', { key_type: 'tls_cert', expires_before: now });
    case 'certificate_ending': {
      const soon = new Date(Date.parse(now) + limits.rest.expiringSoonMs).toISOString();
      return list('/api/credentials', { key_type: 'tls_cert', expires_before: soon });
    }
    case 'node_offline':
      return list('/api/nodes', { status: 'offline' });
    case 'node_rejected':
      return list('/api/nodes', { apply: 'rejected' });
    case 'listener_missing':
      return list('/api/nodes', { listeners: 'missing', status: 'online' });
    case 'unexpected_listener':
      return list('/api/nodes/ports/runtime', { intended: 'false' });
    case 'upstream_unhealthy':
      return list('/api/l4-upstreams', { health: 'unhealthy' });
    case 'rollout_halted':
      return list('/api/rollouts', { state: 'halted' });
    case 'webhook_stopped':
      return list('/api/webhooks', {});
    case 'agent_cannot_run':
    case 'backup_late':
      return null;
    default:
      return unreachable(kind);
  }
}

function chains(filter: Readonly<Record<string, string>>, causedBy: Matter['causedBy']): string {
  const by = causedBy === null ? {} : { [causedBy.type === 'node' ? 'node_id' : 'upstream_id']: causedBy.resource.id };
  return list('/api/l4-chains', { ...filter, ...by });
}

function list(path: string, query: Readonly<Record<string, string>>): string {
  const text = new URLSearchParams(query).toString();
  return text === '' ? path : `${path}?${text}`;
}
