/**
 * An L4 upstream: an endpoint outside the fleet that chains can end in. State, events, commands.
 * Implements `docs/contract/rest.md#l4-upstreams`.
 */
import type { FleetView, ResourceKey } from '../resource/fleet-view.js';
import type { LifecycleCommand, LifecycleEvent } from '../resource/lifecycle.js';
import { fieldsOf } from '../resource/lifecycle.js';
import type { ResourceMeta } from '../resource/meta.js';

export interface UpstreamTls {
  readonly server_name: string;
  /** Base64 of 32 bytes, at least one. */
  readonly spki_pins_sha256: readonly string[];
}

export interface UpstreamDefinition {
  readonly name: string;
  /** `host:port`, IPv6 in brackets. */
  readonly endpoint: string;
  readonly server_names: readonly string[];
  readonly health_check_interval_ms: number;
  readonly enabled: boolean;
  readonly tls: UpstreamTls | null;
}

export const upstreamFields = fieldsOf<UpstreamDefinition>()([
  'name',
  'endpoint',
  'server_names',
  'health_check_interval_ms',
  'enabled',
  'tls',
]);

export interface UpstreamState extends ResourceMeta, UpstreamDefinition {}

export type UpstreamEvent = LifecycleEvent<'Upstream', 'upstream_id', UpstreamDefinition>;
export type UpstreamCommand = LifecycleCommand<'Upstream', UpstreamDefinition, 'name'>;

export const upstreamKey: ResourceKey<UpstreamState> = { type: 'l4_upstream' };

export function upstreamAt(fleet: Pick<FleetView, 'get'>, id: string | undefined): UpstreamState | undefined {
  return id === undefined ? undefined : fleet.get(upstreamKey, id);
}
