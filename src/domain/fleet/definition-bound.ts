/**
 * The bound of a definition. An edit holds the old and the new one, a delete of a chain the current and the deployed
 * one; with both within the bound, every event fits into a command, so what can be created can also be edited,
 * deployed, deleted and taken back. Implements `docs/contract/domain.md#commands-and-events`.
 */
import { timestamp } from '../../kernel/clock.js';
import { limits } from '../../kernel/limits.js';
import type { FleetView } from '../resource/fleet-view.js';
import { pick } from '../resource/lifecycle.js';
import type { Refusal } from '../resource/refusal.js';
import type { FleetEvent, AnyState } from './resources.js';
import { declaringResource, resourceOf } from './resources.js';

/**
 * An upper bound of the bytes that a value takes as JSON. A definition after an event consists of the state before and
 * of the event: nearly always, both together are within the bound, and the fold need not be tried. Counted, as a text
 * of each definition would be made only to see its length.
 */
function mostBytes(value: unknown): number {
  if (typeof value === 'string') return 3 + escapedBytes * value.length;
  if (typeof value !== 'object' || value === null) return mostOfScalar;
  let bytes = 3;
  if (Array.isArray(value)) {
    for (const entry of value) bytes += mostBytes(entry);
    return bytes;
  }
  for (const key of Object.keys(value)) bytes += mostBytes(key) + 1 + mostBytes(Reflect.get(value, key));
  return bytes;
}
/** Of a UTF-16 code unit, as an escape sequence. */
const escapedBytes = 6;
/** A number with its comma. */
const mostOfScalar = 26;

/**
 * The refusal of decided events that make a definition too large. Only of those that create or edit one: older logs
 * may hold larger definitions, which can still be deployed and deleted.
 */
export function oversizedDefinition(fleet: FleetView, events: readonly FleetEvent[]): Refusal | undefined {
  for (const event of events) {
    const declaring = declaringResource(event);
    if (declaring.kind !== 'resource') continue;
    const { type, noun, fields, evolve } = declaring.declaration;
    if (event.type !== `${noun}Created` && event.type !== `${noun}Updated`) continue;
    const before = fleet.get<AnyState>({ type }, resourceOf(event).id);
    if (mostBytes(event.data) + mostBytes(before) <= limits.fleet.definitionBytes) continue;
    const after = evolve(before, event, { at: timestamp(0), commandId: '' });
    if (after === undefined) continue;
    const bytes = new TextEncoder().encode(JSON.stringify(pick(after, fields))).length;
    if (bytes <= limits.fleet.definitionBytes) continue;
    return {
      code: 'payload_too_large',
      message: `the definition of the ${type} would be ${bytes} bytes as JSON; expected at most ${limits.fleet.definitionBytes}`,
    };
  }
  return undefined;
}
