/** Events of a known size, and an event store that answers appends as a test wants it. */
import type { ProposedEvent } from '../../src/kernel/event.js';
import { eventBytes } from '../../src/storage/event-json.js';
import type { AppendOutcome, EventStore } from '../../src/storage/event-store.js';

let ids = 0;
/** An event of exactly so many bytes as JSON. */
export function eventOf(type: string, bytes = 200): ProposedEvent {
  const event = (filler: string): ProposedEvent => ({
    id: `id-${(ids += 1)}`,
    type,
    data: { filler },
    metadata: {
      command: { id: 'c', index: 0, count: 1 },
      actor: { type: 'agent', id: 'n1', name: 'n1' },
      request_id: 'r',
      occurred_at: '2025-01-01T00:00:00.000Z',
      schema_version: 1,
    },
  });
  return event('x'.repeat(Math.max(0, bytes - eventBytes(event('')))));
}
/** What an append answers, one after the other; then that it is written. */
export function storeOf(...outcomes: AppendOutcome[]) {
  const appends: { readonly expected: unknown; readonly types: readonly string[]; readonly ids: readonly string[] }[] =
    [];
  const append: EventStore['append'] = async (_stream, expected, events) => {
    appends.push({ expected, types: events.map(({ type }) => type), ids: events.map(({ id }) => id) });
    return outcomes.shift() ?? { kind: 'appended', revision: 0, position: 7 };
  };
  return { append, appends };
}
export const refused = (what: 'stream' | 'append'): AppendOutcome => ({ kind: 'refused', what, cause: 'no' });
export const unknown: AppendOutcome = { kind: 'unknown', cause: 'lost' };
export const unavailable: AppendOutcome = { kind: 'unavailable', cause: 'away' };
