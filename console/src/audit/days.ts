/** Entries by the day on which they were written, in the reader's zone. Pure. */
import { formatTime } from '../shared/ui/format.js';

export interface Day<E> {
  readonly day: string;
  readonly entries: readonly E[];
}

/** @param entries newest first; they stay in this order */
export function byDay<E extends { readonly at: string }>(entries: readonly E[]): readonly Day<E>[] {
  const days = new Map<string, E[]>();
  for (const entry of entries) {
    const day = formatTime(entry.at, 'date');
    const ofDay = days.get(day);
    if (ofDay === undefined) days.set(day, [entry]);
    else ofDay.push(entry);
  }
  return [...days].map(([day, ofDay]) => ({ day, entries: ofDay }));
}
