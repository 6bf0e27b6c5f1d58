/**
 * Runs benchmarks one after the other and prints one JSON object for each to standard output:
 *
 *   npm run bench -- [names…] [--quick] [--events N] [--agents N] [--only ROW]
 */
import { adapters } from './adapters.js';
import { attacks } from './attacks.js';
import { commandCost } from './command-cost.js';
import { commands } from './commands.js';
import { consoleBench } from './console.js';
import { events } from './events.js';
import { machine, type Report } from './figures.js';
import { fleet } from './fleet.js';
import { fleetFile } from './fleet-file.js';
import { handshakes } from './handshakes.js';
import { history } from './history.js';
import { hops } from './hops.js';
import { readOptions, type BenchOptions } from './options.js';
import { reality } from './reality.js';
import { realityShape } from './reality-shape.js';
import { replay } from './replay.js';
import { rest } from './rest.js';
import { rollouts } from './rollouts.js';
import { rotation } from './rotation.js';
import { abandon } from './stack.js';
import { strangers } from './strangers.js';
import { turns } from './turns.js';

const benches: { readonly [name: string]: (options: BenchOptions) => Promise<Report> } = {
  rest,
  commands,
  'command-cost': commandCost,
  replay,
  fleet,
  'fleet-file': fleetFile,
  turns,
  handshakes,
  reality,
  'reality-shape': realityShape,
  adapters,
  events,
  attacks,
  strangers,
  history,
  rollouts,
  rotation,
  hops,
  console: consoleBench,
};

async function main(): Promise<void> {
  const { options, names } = readOptions(process.argv.slice(2));
  const unknown = names.find((name) => !Object.hasOwn(benches, name));
  if (unknown !== undefined) {
    throw new Error(`there is no benchmark "${unknown}": expected ${Object.keys(benches).join(', ')}`);
  }
  for (const [name, bench] of Object.entries(benches)) {
    if (names.length > 0 && !names.includes(name)) continue;
    const before = machine();
    const began = performance.now();
    const { figures } = await bench(options);
    const seconds = Math.round((performance.now() - began) / 100) / 10;
    process.stdout.write(
      `${JSON.stringify({ bench: name, quick: options.quick, seconds, machine: before, figures })}\n`,
    );
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    abandon();
    process.exit(1);
  });
}
try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = 1;
}
