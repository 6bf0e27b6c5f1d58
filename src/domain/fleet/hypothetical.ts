/** Events as a command that is only tried on a draft of the fleet and never written. */
import { timestamp } from '../../kernel/clock.js';
import { streams, type RecordedCommand, type RecordedEvent } from '../../kernel/event.js';
import type { JsonObject } from '../../kernel/json.js';
import type { AnyEvent } from '../resource/lifecycle.js';
import { applyCommand } from './apply.js';
import { draftFleet, type Fleet } from './fleet.js';

/** @param events at least one, in their current shape @param revertOf the entry that they revert */
export function hypothetical(fleet: Fleet, events: readonly AnyEvent[], revertOf?: string): RecordedCommand {
  const [first, ...rest] = events.map(({ type, data }, index): RecordedEvent => ({
    id: '',
    stream: streams.fleet,
    type,
    data: data as JsonObject,
    revision: fleet.revision.value + 1 + index,
    position: fleet.position.value + 1 + index,
    metadata: {
      command: { id: '', index, count: events.length },
      actor: { type: 'system', id: 'hypothetical', name: 'hypothetical' },
      request_id: '',
      occurred_at: timestamp(0),
      schema_version: 1,
      ...(revertOf === undefined ? {} : { revert_of: revertOf }),
    },
  }));
  if (first === undefined) throw new RangeError('a command has at least one event');
  return { stream: streams.fleet, events: [first, ...rest] };
}

/** A draft of the fleet after some events. */
export function draftAfter(fleet: Fleet, events: readonly AnyEvent[]): Fleet {
  const { state } = draftFleet(fleet);
  applyCommand(state, hypothetical(state, events));
  return state;
}
