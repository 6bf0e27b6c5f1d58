/** A clock that can be stopped, as events store it: of a wave of a rollout, or of a change that awaits confirmation. */
export interface RunClock {
  /** How long it had run by `since`, in milliseconds. */
  readonly ran_ms: number;
  /** RFC 3339: it has run since then; null while it is stopped. */
  readonly since: string | null;
}

/** How long it has run, in milliseconds. @param at RFC 3339 */
export function ranMs({ ran_ms, since }: RunClock, at: string): number {
  return since === null ? ran_ms : ran_ms + Math.max(0, Date.parse(at) - Date.parse(since));
}
