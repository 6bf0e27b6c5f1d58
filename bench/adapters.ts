/**
 * The store adapters beside the bare clients that they use: commands per second (`adapters-commands.ts`) and events per
 * second of a rebuild (`adapters-rebuild.ts`), for each pair of stores. This file sets sizes and order.
 */
import { measureCommands } from './adapters-commands.js';
import { measureRebuilds } from './adapters-rebuild.js';
import type { Report } from './figures.js';
import type { BenchOptions } from './options.js';
import { mongoDbAvailable, serversInUse } from './servers.js';

/** More events would not change the figures, and a rebuild on every pair takes long. */
const rebuildEvents = 100_000;
const mongoEvents = 1_000;

export async function adapters({ quick, events }: BenchOptions): Promise<Report> {
  if (!mongoDbAvailable())
    process.stderr.write('adapters: measured without MongoDB; npm run test:servers builds FerretDB as a stand-in\n');
  const rounds = quick ? 2 : 3;
  // Rebuilds come first, because they need the log of a real server to be empty.
  const rebuilds = await measureRebuilds({
    rounds,
    events: Math.min(events, quick ? 20_000 : rebuildEvents),
    mongoEvents: quick ? 500 : mongoEvents,
  });
  const commands = await measureCommands({ rounds, forMs: quick ? 500 : 2_000 });
  return { bench: 'adapters', figures: { ...serversInUse(), rounds, rebuilds, commands } };
}
