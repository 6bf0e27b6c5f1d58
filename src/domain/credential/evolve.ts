/** The fold of a credential's events, for the fleet and for the read model. */
import { timestamp } from '../../kernel/clock.js';
import { unreachable } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import { withChanges } from '../resource/change.js';
import type { EventContext } from '../resource/declaration.js';
import { firstVersion, nextVersion, restoredVersion } from '../resource/meta.js';
import type { CredentialEvent, CredentialState, PinOverlap } from './credential.js';

/**
 * The credential after one event; undefined once deleted. Ignores an event for a credential that does not exist, and the
 * creation or restoring of one that does.
 */
export function evolveCredential(
  state: CredentialState | undefined,
  event: CredentialEvent,
  { at }: EventContext,
): CredentialState | undefined {
  if (event.type === 'CredentialCreated') {
    if (state !== undefined) return state;
    const { credential_id, ...fields } = event.data;
    return { ...fields, ...firstVersion(credential_id, at), overlap: null };
  }
  if (event.type === 'CredentialRestored') {
    if (state !== undefined) return state;
    const { credential_id, former, ...fields } = event.data;
    // Nothing dials by a credential that was deleted, so no former pin is left to trust.
    return { ...fields, ...restoredVersion(credential_id, former, at), overlap: null };
  }
  if (state === undefined) return undefined;
  switch (event.type) {
    case 'CredentialUpdated': {
      const next = withChanges(state, event.data.changes);
      return nextVersion({ ...next, overlap: overlapOf(state, next, at) }, at);
    }
    case 'CredentialDeleted':
      return undefined;
    case 'CredentialOverlapEnded':
      return nextVersion({ ...state, overlap: event.data.overlap.to }, at);
    default:
      return unreachable(event);
  }
}

/** A new overlap when the key of the certificate changes, else the one that lasts. */
function overlapOf(before: CredentialState, after: CredentialState, at: string): PinOverlap | null {
  const former = before.certificate?.spki_sha256;
  if (former === undefined || former === after.certificate?.spki_sha256) return before.overlap;
  return { spki_sha256: former, ends_at: timestamp(Date.parse(at) + limits.fleet.pinOverlapMs) };
}
