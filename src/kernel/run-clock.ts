/** A clock that can stand, as events keep it: for a wave of a rollout, or a change that waits for its confirmation. */
export interface RunClock {
  /** How long it ran until `since`, in milliseconds. */
  readonly ran_ms: number;
  /** RFC 3339: it has run on from then; null while it stands. */
  readonly since: string | null;
}

/** How long it has run, in milliseconds. @param at RFC 3339 */
export function ranMs({ ran_ms, since }: RunClock, at: string): number {
  return since === null ? ran_ms : ran_ms + Math.max(0, Date.parse(at) - Date.parse(since));
}
