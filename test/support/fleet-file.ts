/** Documents of the fleet without a service: their sections, as the routes of this release declare them, export and comparison. */
import Fastify from 'fastify';
import { withKeys } from '../../src/commands/fleet-file-keys.js';
import { compareWithFleet, type Comparison } from '../../src/domain/fleet-file/compare.js';
import type { FileFlags } from '../../src/domain/fleet-file/document.js';
import { runSync } from '../../src/kernel/pieces.js';
import { resolveNames } from '../../src/domain/fleet-file/resolve.js';
import { randomIds } from '../../src/kernel/ids.js';
import { readDocument } from '../../src/transport/rest/fleet-file/read-document.js';
import { textsInPlace } from '../../src/transport/rest/fleet-file/texts.js';
import { documentLines } from '../../src/transport/rest/fleet-file/write-document.js';
import { sealed } from './fleet.js';
import { fleetQueries } from '../../src/projections/fleet/fleet-queries.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import type { WholeFleet } from '../../src/projections/port.js';
import { systemClock } from '../../src/kernel/clock.js';
import type { RestApp, RestDeps, RestOptions } from '../../src/transport/rest/deps.js';
import { sectionsOf, type Sections } from '../../src/transport/rest/fleet-file/sections.js';
import type { DeclaredRoute } from '../../src/transport/rest/route-declaration.js';
import { routesOfResources } from '../../src/transport/rest/resources.js';

function declaredSections(): Sections {
  const routes: DeclaredRoute[] = [];
  const app = Fastify();
  app.addHook('onRoute', (route) => void routes.push(route as unknown as DeclaredRoute));
  const anything: unknown = new Proxy({}, { get: () => anything, ownKeys: () => [] });
  const deps = {
    fleet: fleetQueries({ fleet: emptyFleet }, systemClock),
    commands: anything,
    webhooks: anything,
    clock: systemClock,
  };
  for (const add of Object.values(routesOfResources)) {
    add(app as unknown as RestApp, deps as unknown as RestDeps, anything as RestOptions);
  }
  return sectionsOf(routes);
}

/** A fleet as an export reads it. */
const wholeOf = (fleet: Fleet): WholeFleet => fleetQueries({ fleet: () => fleet }, systemClock).whole();

const sections = declaredSections();

/** The document of what a set owns; null for what no set owns. */
export const exportedFrom = (fleet: Fleet, set: string | null): string =>
  [...documentLines(sections, wholeOf(fleet), set, false)].join('');

/** What a document asks of a fleet; keys that it leaves out count as given. */
export async function comparedWith(fleet: Fleet, text: string, flags: Partial<FileFlags>): Promise<Comparison> {
  const { document } = await readDocument(text, sections, randomIds, textsInPlace);
  const names = runSync(resolveNames(fleet, document));
  const keyed = await withKeys(fleet, document, names, { now: 0, presume: true, psk: () => null, seal: () => sealed });
  const all: FileFlags = { prune: false, adopt: false, adoptFrom: [], ...flags };
  return runSync(compareWithFleet(fleet, keyed.document, all));
}
