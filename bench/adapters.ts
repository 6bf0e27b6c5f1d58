/**
 * The adapters of the stores beside the bare clients that they use: commands a second, and events a second of a rebuild.
 * Each pair of stores has its own file of measurements; here is only their size and order.
 */
import { measureCommands } from './adapters-commands.js';
import { measureRebuilds } from './adapters-rebuild.js';
import type { Report } from './figures.js';
import type { BenchOptions } from './options.js';
import { mongoDbThere, serversInUse } from './servers.js';

/** More than the read models of so many events tell nothing more, and a rebuild on every pair takes long. */
const rebuildEvents = 100_000;
const mongoEvents = 1_000;

export async function adapters({ quick, events }: BenchOptions): Promise<Report> {
  if (!mongoDbThere()) process.stderr.write('adapters: without MongoDB; npm run test:servers builds FerretDB\n');
  const rounds = quick ? 2 : 3;
  // Filled while the log of a real server is empty.
  const rebuilds = await measureRebuilds({
    rounds,
    events: Math.min(events, quick ? 20_000 : rebuildEvents),
    mongoEvents: quick ? 500 : mongoEvents,
  });
  const commands = await measureCommands({ rounds, forMs: quick ? 500 : 2_000 });
  return { bench: 'adapters', figures: { ...serversInUse(), rounds, rebuilds, commands } };
}
