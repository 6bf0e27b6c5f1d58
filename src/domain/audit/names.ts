/**
 * The name that an event gives to its resource. Few events carry one, and every audit entry shows one, so a read model
 * keeps the names over time. Implements `docs/contract/rest.md#audit`, `resource.name`.
 */
import type { RecordedEvent } from '../../kernel/event.js';
import { streams } from '../../kernel/event.js';
import { accountEvent, userType } from '../accounts/declaration.js';
import { resourceOf } from '../fleet/resources.js';

/** The name that an event sets; null when it sets none. */
export function nameGiven({ stream, data }: RecordedEvent): string | null {
  if (stream === streams.accounts) return typeof data['username'] === 'string' ? data['username'] : null;
  const changes = data['changes'];
  const change: unknown = typeof changes === 'object' && changes !== null ? Reflect.get(changes, 'name') : undefined;
  const to: unknown = typeof change === 'object' && change !== null ? Reflect.get(change, 'to') : undefined;
  const name = data['name'] ?? to;
  return typeof name === 'string' ? name : null;
}

interface NamedResource {
  readonly type: string;
  readonly id: string;
  readonly name: string;
}

/** The resource that an event names; undefined when it names none. */
export function namedBy(event: RecordedEvent): NamedResource | undefined {
  const name = nameGiven(event);
  if (name === null) return undefined;
  if (event.stream === streams.accounts) return { type: userType, id: accountEvent(event).data.user_id, name };
  return event.stream === streams.fleet ? { ...resourceOf(event), name } : undefined;
}
