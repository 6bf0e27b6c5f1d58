/**
 * Bytes that a connection without a key sends at once: `processes/attacker.ts` makes them on new connections again and
 * again, `attacks.ts` measures what they cost.
 */
export const floods = [
  'header_lists',
  'allowed_headers',
  'settings_frames',
  'ping_frames',
  'rapid_resets',
  'empty_frames',
  'priority_frames',
  'half_requests',
] as const;
export type FloodKind = (typeof floods)[number];
