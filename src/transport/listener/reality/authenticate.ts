/**
 * Tells agents from strangers by their ClientHello. A stranger never learns why: the target answers instead. Pure
 * except for the memory of earlier hellos. Implements `docs/reality.md#the-session-id`.
 */
import type { Clock } from '../../../kernel/clock.js';
import { createSeenOnce, type SeenOnce } from '../../../kernel/seen-once.js';
import { authKeyOf, openClaim, shortIdFromHex } from '../../../channel/reality/auth.js';
import type { ClientHello } from '../../../channel/tls/client-hello.js';
import type { RealityServer } from './settings.js';
import { tuning } from './tuning.js';

/** Why a hello counts as a stranger's; `other` covers everything that anybody may send. */
export type StrangerReason = 'other' | 'server_name' | 'short_id' | 'clock' | 'replayed';

export type Verdict =
  | { readonly kind: 'agent'; readonly authKey: Uint8Array }
  | { readonly kind: 'stranger'; readonly reason: StrangerReason };

/** @param now milliseconds since the Unix epoch */
export type Authenticate = (hello: ClientHello, now: number) => Verdict;

/** The hellos already accepted from agents, so that none is accepted twice. Listeners that share keys share it too. */
export interface HelloMemory {
  readonly seen: SeenOnce;
  /** Milliseconds since the Unix epoch: hellos accepted earlier are not remembered. Moves back with a clock that was ahead. */
  since(): number;
}

export function createHelloMemory(clock: Clock): HelloMemory {
  const [at, monotonic] = [clock.now(), clock.monotonic()];
  return {
    seen: createSeenOnce(tuning.replayEntries),
    since: () => Math.min(at, clock.now() - (clock.monotonic() - monotonic)),
  };
}

export function createAuthenticator(settings: RealityServer, { seen, since }: HelloMemory): Authenticate {
  const names = new Set(settings.serverNames);
  const shortIds = new Set(settings.shortIds.map((digits) => shortIdFromHex(digits).toString('hex')));
  const stranger = (reason: StrangerReason): Verdict => ({ kind: 'stranger', reason });

  return (hello, now) => {
    if (!hello.offersTls13) return stranger('other');
    if (!names.has(hello.serverName?.toLowerCase() ?? '')) return stranger('server_name');
    // A client that offers no share of X25519 alone uses the X25519 half of the hybrid share.
    const share = hello.x25519 ?? hello.hybrid?.subarray(-32);
    const authKey = share && authKeyOf(settings.keys, share, hello.random);
    const claim = authKey && openClaim(authKey, hello);
    if (authKey === undefined || claim === undefined) return stranger('other');
    if (!shortIds.has(claim.shortId.toString('hex'))) return stranger('short_id');
    const time = claim.seconds * 1000;
    // A claim has whole seconds.
    if (Math.abs(now - time) > settings.maxTimeDiffMs + 1000) return stranger('clock');
    if (time + 1000 <= since()) return stranger('replayed');
    const until = time + settings.maxTimeDiffMs + 1000;
    if (seen.note(hello.random.toString('latin1'), until, now) !== 'new') return stranger('replayed');
    return { kind: 'agent', authKey };
  };
}
