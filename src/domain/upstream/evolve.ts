/** Folds an upstream's events into its state; pure, used by the fleet and by the read model alike. */
import { unreachable } from '../../kernel/errors.js';
import { withChanges } from '../resource/change.js';
import { born, touched } from '../resource/meta.js';
import type { UpstreamEvent, UpstreamState } from './upstream.js';

/** The upstream after one event; undefined once deleted. */
export function evolveUpstream(
  state: UpstreamState | undefined,
  event: UpstreamEvent,
  at: string,
): UpstreamState | undefined {
  if (event.type === 'UpstreamCreated') {
    const { upstream_id, ...fields } = event.data;
    return { ...fields, ...born(upstream_id, at) };
  }
  if (state === undefined) return undefined;
  switch (event.type) {
    case 'UpstreamUpdated':
      return touched(withChanges(state, event.data.changes), at);
    case 'UpstreamDeleted':
      return undefined;
    default:
      return unreachable(event);
  }
}
