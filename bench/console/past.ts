/**
 * An invented day of history for pictures of a new fleet, with more traffic by day than by night and a short outage. Replaces
 * the service's answers about history, and nothing else.
 */
import type { Page } from 'playwright-core';

const slotMs = 5 * 60_000;
const slotsOfDay = 288;
/** Slots in which the node was away. */
const outage = { from: 100, to: 103 } as const;

/** Answers the page's requests for history with the invented day. */
export async function showInventedPast(page: Page): Promise<void> {
  await page.route(/\/api\/.*\/history(\?|$)/, (route) =>
    route.fulfill({
      json: { success: true, data: { recorded: true, step: '5m', points: day(Date.now()) }, error: null },
    }),
  );
}

function day(now: number): readonly object[] {
  const last = Math.floor(now / slotMs);
  return Array.from({ length: slotsOfDay }, (_, index) => {
    const slot = last - slotsOfDay + 1 + index;
    const away = index >= outage.from && index < outage.to;
    // Lowest at 3 in the morning.
    const tide = 0.55 - 0.4 * Math.cos(((slot - 36) / slotsOfDay) * 2 * Math.PI);
    const load = away ? 0 : tide + 0.03 * Math.sin(slot * 0.37) + 0.02 * Math.sin(slot * 1.1);
    // The newest slot still fills.
    const lasted = Math.min(1, now / slotMs - slot);
    const counted = (most: number): number => Math.round(most * load * lasted);
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
