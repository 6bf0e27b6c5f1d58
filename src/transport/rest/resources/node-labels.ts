/** The keys of labels that nodes have: what one can group the fleet by. Extends `docs/contract/rest.md#nodes`. */
import { z } from 'zod';
import { compareText } from '../../../kernel/compare-text.js';
import { limits } from '../../../kernel/limits.js';
import { forEach, withPauses } from '../../../kernel/pieces.js';
import { answers, ok } from '../answers/envelope.js';
import type { RestApp, RestDeps } from '../deps.js';
import { component, documented } from '../schemas/documented.js';
import { tuning } from '../tuning.js';

const schema = component('LabelKeys', 'The keys of labels that nodes have', {
  items: documented(
    z.array(
      component('LabelKey', 'A key of labels', {
        key: documented(z.string(), 'Key of a label', 'region'),
        nodes: documented(z.int(), 'Number of nodes that have it with a value', 12),
      }),
    ),
    `Those of most nodes first, at most ${limits.rest.labelKeysShown}`,
  ),
  nodes_total: documented(z.int(), 'Number of all nodes', 12),
});

export function nodeLabelRoutes(app: RestApp, { fleet }: Pick<RestDeps, 'fleet'>): void {
  app.get('/api/nodes/labels', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listLabelKeys',
      summary: 'List the keys of labels that nodes have',
      description: 'With an empty value, a label groups nothing, and does not count.',
      response: answers(schema),
    },
    handler: async () => {
      const counts = new Map<string, number>();
      let total = 0;
      const count = forEach(fleet.allNodes(), tuning.nodesPerTurn, ({ id }) => {
        total += 1;
        for (const [key, value] of Object.entries(fleet.node(id)?.labels ?? {})) {
          if (value !== '') counts.set(key, (counts.get(key) ?? 0) + 1);
        }
      });
      await withPauses(count);
      const items = [...counts]
        .map(([key, nodes]) => ({ key, nodes }))
        .sort((a, b) => b.nodes - a.nodes || compareText(a.key, b.key))
        .slice(0, limits.rest.labelKeysShown);
      return ok({ items, nodes_total: total });
    },
  });
}
