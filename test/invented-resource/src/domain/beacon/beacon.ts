/** A beacon: a signal that a node sends. State, events, commands. Invented, to show what a resource takes. */
import type { ResourceKey } from '../resource/fleet-view.js';
import type { LifecycleCommand, LifecycleEvent } from '../resource/lifecycle.js';
import { fieldsOf } from '../resource/lifecycle.js';
import type { ResourceMeta } from '../resource/meta.js';

export interface BeaconDefinition {
  readonly name: string;
  readonly node_id: string;
  readonly interval_secs: number;
  readonly colours: readonly string[];
}

export const beaconFields = fieldsOf<BeaconDefinition>()(['name', 'node_id', 'interval_secs', 'colours']);

export interface BeaconState extends ResourceMeta, BeaconDefinition {}

export type BeaconEvent = LifecycleEvent<'Beacon', 'beacon_id', BeaconDefinition>;
export type BeaconCommand = LifecycleCommand<'Beacon', BeaconDefinition>;

export const beaconKey: ResourceKey<BeaconState> = { type: 'beacon' };
