/**
 * Streams the fleet as documents, one for each set, all at one log revision. Implements
 * `docs/contract/automation.md#the-fleet-as-a-file`, export.
 */
import { z } from 'zod';
import { sortKey } from '../../../domain/resource/meta.js';
import { sortedBy } from '../../../kernel/compare-text.js';
import { streams } from '../../../kernel/event.js';
import { limits } from '../../../kernel/limits.js';
import { yieldToEventLoop } from '../../../kernel/background.js';
import type { WholeFleet } from '../../../projections/port.js';
import { answers } from '../answers/envelope.js';
import { sendPieces } from '../answers/streamed-json.js';
import type { RestApp, RestDeps } from '../deps.js';
import { component, documented } from '../schemas/documented.js';
import { nfcText } from '../schemas/fields.js';
import { query } from '../schemas/query.js';
import { exampleDocument } from './plan-schema.js';
import { defaultSet } from './read-document.js';
import type { Sections } from './sections.js';
import { changedSettings, documentLines } from './write-document.js';

const exported = component('FleetExport', 'The fleet as documents', {
  documents: documented(
    z.array(
      component('FleetDocument', 'The resources of a set', {
        set: documented(z.string().nullable(), 'The set; null for what no set owns', 'edge-eu'),
        document: documented(z.string(), 'YAML', exampleDocument),
      }),
    ),
    'One for each set',
  ),
  cursor: documented(z.string().nullable(), 'Cursor of the event feed at the time of the export', 'AQ'),
});

export function exportRoute(app: RestApp, deps: RestDeps, sections: Sections): void {
  app.get('/api/fleet/export', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'exportFleet',
      summary: 'Export the fleet as documents, one for each set',
      description:
        'Without secrets, defaults and assigned values; a self-signed certificate is given by its names. `?set=` with an empty value exports resources that no set owns; an unknown set gives no document.',
      querystring: query({
        set: nfcText(0, limits.rest.nameChars)
          .optional()
          .meta({ description: 'Only this set; empty for resources that no set owns', examples: ['edge-eu'] }),
      }),
      response: answers(exported),
    },
    handler: async (request, reply) => {
      const whole = deps.fleet.whole();
      const { set } = request.query;
      const asked = set === undefined ? undefined : set === '' ? null : set;
      const { cursor } = whole.revision < 0 ? { cursor: null } : await deps.feed.behind(streams.fleet, whole.revision);
      return sendPieces(reply, exportPieces(sections, whole, asked, cursor));
    },
  });
}

/** The sets of a fleet; changed settings belong to the default one. */
function setsOf(sections: Sections, whole: WholeFleet): readonly (string | null)[] {
  const sets = new Set<string | null>();
  for (const type of [...sections.all.map((section) => section.type), 'listener_policy']) {
    for (const { managed_by } of whole.states(type)) sets.add(managed_by ?? null);
  }
  if (Object.keys(changedSettings(whole.settings)).length > 0) sets.add(defaultSet);
  return sortedBy(sets, (set) => (set === null ? 'last' : `first ${sortKey(set)}`));
}

const linesPerTurn = 200;

async function* exportPieces(
  sections: Sections,
  whole: WholeFleet,
  asked: string | null | undefined,
  cursor: string | null,
): AsyncGenerator<string, void> {
  let before = '{"documents":[';
  let lines = 0;
  for (const set of setsOf(sections, whole)) {
    if (asked !== undefined && asked !== set) continue;
    yield `${before}{"set":${JSON.stringify(set)},"document":"`;
    before = '"},';
    for (const line of documentLines(sections, whole, set, set === defaultSet)) {
      yield JSON.stringify(line).slice(1, -1);
      lines += 1;
      if (lines % linesPerTurn === 0) await yieldToEventLoop();
    }
  }
  yield `${before === '"},' ? '"}' : before}],"cursor":${JSON.stringify(cursor)}}`;
}
