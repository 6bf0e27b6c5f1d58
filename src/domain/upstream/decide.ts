/** Decides commands about upstreams against the fleet; pure. */
import { ok } from '../../kernel/result.js';
import { unreachable } from '../../kernel/errors.js';
import { changesOf } from '../resource/change.js';
import { definitionsOf, upstreamOf } from '../chain/status.js';
import type { Fleet } from '../fleet/fleet.js';
import { versionMismatch } from '../resource/if-match.js';
import { describeOwners } from '../listeners/collisions.js';
import { nameKey } from '../resource/names.js';
import type { Decision } from '../resource/refusal.js';
import { refuse } from '../resource/refusal.js';
import type { UpstreamCommand, UpstreamEvent } from './upstream.js';

export function decideUpstream(fleet: Fleet, command: UpstreamCommand): Decision<UpstreamEvent> {
  switch (command.type) {
    case 'CreateUpstream': {
      const { type: _, id, ...fields } = command;
      const holder = fleet.names.get(`l4_upstream/${nameKey(fields.name)}`);
      if (holder !== undefined) {
        return refuse(
          'conflict',
          `name: "${fields.name}" is the name of l4_upstream ${holder} already; expected a unique name`,
        );
      }
      return ok([{ type: 'UpstreamCreated', data: { upstream_id: id, ...fields } }]);
    }
    case 'UpdateUpstream':
      return update(fleet, command);
    case 'DeleteUpstream':
      return remove(fleet, command);
    default:
      return unreachable(command);
  }
}

type Of<T extends UpstreamCommand['type']> = Extract<UpstreamCommand, { type: T }>;

function update(fleet: Fleet, command: Of<'UpdateUpstream'>): Decision<UpstreamEvent> {
  const upstream = fleet.upstreams.get(command.id);
  if (upstream === undefined) return refuse('not_found', `there is no l4_upstream ${command.id}`);
  const mismatch = versionMismatch(upstream.version, command.ifMatch);
  if (mismatch !== undefined) return { ok: false, error: mismatch };
  const { endpoint, server_names, health_check_interval_ms, enabled, tls } = command;
  const changes = changesOf(upstream, { endpoint, server_names, health_check_interval_ms, enabled, tls });
  if (Object.keys(changes).length === 0) return ok([]);
  if (tls !== undefined && tls !== null) {
    const udp = udpUsers(fleet, upstream.id);
    if (udp.length > 0) {
      return refuse(
        'conflict',
        `tls: expected null while the udp chain ${describeOwners(fleet, udp)} ends in this upstream`,
      );
    }
  }
  return ok([{ type: 'UpstreamUpdated', data: { upstream_id: upstream.id, changes } }]);
}

function remove(fleet: Fleet, command: Of<'DeleteUpstream'>): Decision<UpstreamEvent> {
  const upstream = fleet.upstreams.get(command.id);
  if (upstream === undefined) return refuse('not_found', `there is no l4_upstream ${command.id}`);
  const mismatch = versionMismatch(upstream.version, command.ifMatch);
  if (mismatch !== undefined) return { ok: false, error: mismatch };
  const owners = fleet.references.get(`l4_upstream/${upstream.id}`);
  if (owners.size > 0) {
    return refuse('conflict', `the l4_upstream "${upstream.name}" is still used by ${describeOwners(fleet, owners)}`);
  }
  const { name, endpoint, server_names, health_check_interval_ms, enabled, tls } = upstream;
  const fields = { name, endpoint, server_names, health_check_interval_ms, enabled, tls };
  return ok([{ type: 'UpstreamDeleted', data: { upstream_id: upstream.id, ...fields } }]);
}

/** Owners of udp definitions, current or deployed, that end in the upstream. */
function udpUsers(fleet: Fleet, upstreamId: string): readonly string[] {
  return [...fleet.references.get(`l4_upstream/${upstreamId}`)].filter((owner) => {
    const chain = fleet.chains.get(owner.slice(owner.indexOf('/') + 1));
    return (
      chain !== undefined &&
      definitionsOf(chain).some((definition) => definition.payload === 'udp' && upstreamOf(definition) === upstreamId)
    );
  });
}
