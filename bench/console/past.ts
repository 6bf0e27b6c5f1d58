/**
 * An invented past for pictures of a new fleet, with more traffic by day than by night and a short outage. Replaces
 * the service's answers about history, and nothing else.
 */
import type { Page } from 'playwright-core';

/** As long as the service keeps each. */
const steps = {
  '1m': { slotMs: 60_000, slots: 60 },
  '5m': { slotMs: 5 * 60_000, slots: 288 },
  '1h': { slotMs: 3_600_000, slots: 720 },
} as const;
type Step = keyof typeof steps;
const dayMs = 86_400_000;
/** Slots in which the node was away. */
const outage = { from: 100, to: 103 } as const;

/** Answers the page's requests for history with the invented past. */
export async function showInventedPast(page: Page): Promise<void> {
  await page.route(/\/api\/.*\/history(\?|$)/, (route) => {
    const step = (new URL(route.request().url()).searchParams.get('step') ?? '5m') as Step;
    const data = { recorded: true, recorded_since: null, step, points: past(step, Date.now()) };
    return route.fulfill({ json: { success: true, data, error: null } });
  });
}

function past(step: Step, now: number): readonly object[] {
  const { slotMs, slots } = steps[step];
  const last = Math.floor(now / slotMs);
  return Array.from({ length: slots }, (_, index) => {
    const slot = last - slots + 1 + index;
    const away = index >= outage.from && index < outage.to;
    // Lowest at 3 in the morning.
    const tide = 0.55 - 0.4 * Math.cos((((slot * slotMs) % dayMs) / dayMs - 1 / 8) * 2 * Math.PI);
    const load = away ? 0 : tide + 0.03 * Math.sin(slot * 0.37) + 0.02 * Math.sin(slot * 1.1);
    // The newest slot still fills.
    const lasted = Math.min(1, now / slotMs - slot);
    const counted = (most: number): number => Math.round(((most * load * slotMs) / steps['5m'].slotMs) * lasted);
    return {
      at: new Date(slot * slotMs).toISOString(),
      bytes_in: counted(9e8),
      bytes_out: counted(6e9),
      sessions: counted(4_000),
      errors: counted(200 * Math.max(0, Math.sin(slot * 0.13))),
      rtt_ms: away ? null : 11 + 4 * load + 0.5 * Math.sin(slot * 0.7),
      online: away ? 0 : 1,
    };
  });
}
