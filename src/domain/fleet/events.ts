/** Every event of `svc-fleet`, and the shape versions of this release. An unknown one is never skipped. */
import type { ChainCommand, ChainEvent } from '../chain/chain.js';
import type { NodeCommand, NodeEvent } from '../node/node.js';
import type { SettingsEvent, UpdateConnectivity } from '../settings/settings.js';
import type { UpstreamCommand, UpstreamEvent } from '../upstream/upstream.js';

export type CompilerEvent = {
  /** Raised at the start of a release with a higher number; lowered by an operator who goes back to an older one. */
  readonly type: 'CompilerVersionRaised' | 'CompilerVersionLowered';
  readonly data: { readonly version: { readonly from: number; readonly to: number } };
};

export type FleetEvent = NodeEvent | UpstreamEvent | ChainEvent | SettingsEvent | CompilerEvent;

export type FleetCommand =
  | NodeCommand
  | UpstreamCommand
  | ChainCommand
  | UpdateConnectivity
  | { readonly type: 'RaiseCompilerVersion' | 'LowerCompilerVersion'; readonly version: number };
