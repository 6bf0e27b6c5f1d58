/** The kinds of matters, and how severe each is. Implements `docs/contract/rest.md#dashboard`, `matters`. */

export const severities = ['down', 'degraded', 'soon'] as const;
export type Severity = (typeof severities)[number];

/** The kinds of matters with their severity, worst first. */
export const severityOf = {
  chain_down: 'down',
  certificate_ended: 'down',
  chain_degraded: 'degraded',
  chain_unknown: 'degraded',
  node_offline: 'degraded',
  node_rejected: 'degraded',
  listener_missing: 'degraded',
  upstream_unhealthy: 'degraded',
  rollout_halted: 'degraded',
  webhook_stopped: 'degraded',
  certificate_ending: 'soon',
  chain_modified: 'soon',
  agent_cannot_run: 'soon',
  unexpected_listener: 'soon',
  backup_late: 'soon',
} as const satisfies { readonly [kind: string]: Severity };

export type MatterKind = keyof typeof severityOf;
export type ResourceMatter = Exclude<MatterKind, 'backup_late'>;
export const matterKinds = Object.keys(severityOf) as readonly MatterKind[];

/** The newest backup, when it is too old or missing. */
export interface LateBackup {
  /** Null when there is none, or its time cannot be right. */
  readonly ageMs: number | null;
  /** Why the last try failed, as a clause; null if it did not. */
  readonly reason: string | null;
}
