/** Who did something, as people say it. */
import type { Schemas } from '../api/client.js';
import { text } from './ui.text.js';

export function actorName({ type, name }: Schemas['AuditActor']): string {
  switch (type) {
    case 'user':
      return name ?? text.unknownActor;
    case 'agent':
      return name === null ? text.agent : `${text.agent} (${name})`;
    case 'system':
      return text.system;
    default:
      return type satisfies never;
  }
}
