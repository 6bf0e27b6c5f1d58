/** Queries about the diagnostics of a node, and how far a run is. Implements `docs/contract/agent-protocol.md`, "Diagnostics". */
import type { Schemas } from '../shared/api/client.js';
import { read } from '../shared/api/read.js';

export type Report = Schemas['Diagnostics'];
type Command = Schemas['ListedAgentCommand'];

/** @param answered the run that was answered last: each has a report of its own */
export const diagnosticsQuery = (id: string, answered?: string) => {
  const reading = { follows: ['agent'], keepsPrevious: true } as const;
  const report = read('node', '/api/nodes/{id}/diagnostics', { path: { id } }, reading);
  return { ...report, queryKey: [...report.queryKey, answered] };
};

/** The run that was asked for last; undefined without one. @param commands newest first */
export const lastRun = (commands: readonly Command[]): Command | undefined =>
  commands.find(({ command }) => command === 'RUN_DIAGNOSTICS');

/** An agent has half of this time. */
const answerMs = 60_000;

/** Whether an answer is to be expected. @param now in milliseconds */
export function isAwaited(
  run: Pick<Command, 'state' | 'expires_at' | 'delivered_at'> | undefined,
  now: number,
): boolean {
  if (run?.state === 'queued') return Date.parse(run.expires_at) > now;
  return run?.state === 'delivered' && now - Date.parse(run.delivered_at ?? '') < answerMs;
}

/** What needs attention first; otherwise in the agent's order. */
export const worstFirst = (items: Report['items']): Report['items'] => [
  ...items.filter(({ ok }) => !ok),
  ...items.filter(({ ok }) => ok),
];
