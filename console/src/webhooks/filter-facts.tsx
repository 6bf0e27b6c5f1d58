/** The filters of a webhook, in words. */
import type { ReactNode } from 'react';
import { NamedLink } from '../shared/ui/named-link.js';
import { typeNames } from '../shared/ui/resource-link.js';
import type { Webhook } from './webhooks.js';
import { text } from './webhooks.text.js';

export function FilterFacts({ filters }: Pick<Webhook, 'filters'>): ReactNode {
  const { resource_type: types = [], resource_id: ids = [], node_id: nodes = [], actor: actors = [] } = filters;
  const lines: readonly (readonly [string, readonly ReactNode[]])[] = [
    [text.resourceType, types.map((type) => typeNames[type] ?? type)],
    [text.resourceId, ids],
    [text.nodes, nodes.map((id) => <NamedLink key={id} type="node" id={id} />)],
    [text.actor, actors],
  ];
  const set = lines.filter(([, values]) => values.length > 0);
  if (set.length === 0) return text.everything;
  return set.map(([name, values]) => (
    <div key={name}>
      {name}: {values.map((value, index) => [index > 0 && ', ', value])}
    </div>
  ));
}
