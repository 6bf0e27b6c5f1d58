/** The declaration of L4 upstreams. They add nothing to snapshots themselves: the chains that end in one compile it. */
import type { Resource } from '../resource/declaration.js';
import { lifecycleAudit } from '../resource/lifecycle-audit.js';
import { lifecycleFold } from '../resource/lifecycle-fold.js';
import { decideUpstream } from './decide.js';
import type { UpstreamCommand, UpstreamEvent, UpstreamState } from './upstream.js';
import { upstreamFields } from './upstream.js';

const audit = lifecycleAudit(upstreamFields);

export const l4Upstream: Resource<
  'l4_upstream',
  'Upstream',
  'upstream',
  UpstreamState,
  UpstreamEvent,
  UpstreamCommand
> = {
  type: 'l4_upstream',
  noun: 'Upstream',
  singular: 'upstream',
  plural: 'upstreams',
  fields: upstreamFields,
  decide: decideUpstream,
  evolve: lifecycleFold('Upstream', 'upstream'),
  indexed: null,
  compiled: null,
  objectionTo: null,
  events: {
    UpstreamCreated: { schemaVersion: 1, audit: audit.created, touches: () => [] },
    UpstreamUpdated: {
      schemaVersion: 1,
      audit: audit.updated,
      touches: (fleet, { data }) => fleet.nodesUsing('l4_upstream', data.upstream_id),
    },
    UpstreamDeleted: { schemaVersion: 1, audit: audit.deleted, touches: () => [] },
  },
};
