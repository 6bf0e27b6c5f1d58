/** Events and commands as a log holds them, by their positions, for tests that need no log. */
import type { RecordedCommand, RecordedEvent } from '../../src/kernel/event.js';

/** An event by its position, one revision for each; its id says where it stands. */
export const eventOf = (position: number, type = 'E', stream = 'svc-fleet'): RecordedEvent => ({
  id: `id-${stream}-${position}`,
  type,
  data: { id: 'x' },
  stream,
  revision: position - 1,
  position,
  metadata: {
    command: { id: 'c', index: 0, count: 1 },
    actor: { type: 'system', id: 's', name: 's' },
    request_id: 'r',
    occurred_at: '2025-01-01T00:00:00.000Z',
    schema_version: 1,
  },
});
export const commandOf = (first: RecordedEvent, ...rest: readonly RecordedEvent[]): RecordedCommand => ({
  stream: first.stream,
  events: [first, ...rest],
});
