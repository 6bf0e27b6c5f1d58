/** What the lists and the page of incidents share: the status, and how long an incident has lasted. */
import type { ReactNode } from 'react';
import { formatDuration } from '../shared/ui/format.js';
import { useNow } from '../shared/ui/now.js';
import { State, type Mood } from '../shared/ui/state.js';
import { known, type Kind } from '../shared/ui/states.js';
import type { Incident } from './incidents.js';
import { text } from './incidents.text.js';

const kinds: Readonly<Record<Incident['resource']['type'], Kind>> = {
  node: 'node',
  l4_chain: 'health',
  l4_upstream: 'upstream',
  credential: 'certificate',
};

/** The worst status, as it is shown everywhere. */
const statusOf = ({ resource, status }: Incident): readonly [mood: Mood, word: string] =>
  known(kinds[resource.type], status);

export function Status({ incident }: { readonly incident: Incident }): ReactNode {
  const [mood, word] = statusOf(incident);
  return <State mood={mood}>{word}</State>;
}

export const statusWord = (incident: Incident): string => statusOf(incident)[1];

export function Lasted({
  incident: { began_at, ended_at, duration_secs },
}: {
  readonly incident: Incident;
}): ReactNode {
  const now = useNow();
  if (ended_at !== null) return formatDuration(duration_secs);
  return text.soFar(formatDuration(Math.max(0, (now - Date.parse(began_at)) / 1_000)));
}
