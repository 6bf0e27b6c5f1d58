/** The declaration of L4 upstreams. They add nothing to snapshots themselves: the chains that end in one compile it. */
import type { Resource } from '../resource/declaration.js';
import { lifecycleAudit } from '../resource/lifecycle-audit.js';
import { lifecycleFold } from '../resource/lifecycle-fold.js';
import { lifecycleUndo } from '../resource/undo.js';
import { decideUpstream } from './decide.js';
import type { UpstreamCommand, UpstreamEvent, UpstreamState } from './upstream.js';
import { upstreamFields } from './upstream.js';

const audit = lifecycleAudit(upstreamFields);
const undo = lifecycleUndo('l4_upstream', 'Upstream', 'upstream');

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
  fields: upstreamFields,
  decide: decideUpstream,
  evolve: lifecycleFold('Upstream', 'upstream'),
  indexed: null,
  compiled: null,
  objectionTo: null,
  events: {
    UpstreamCreated: { schemaVersion: 1, audit: audit.created, undo: undo.created, touches: () => [] },
    UpstreamUpdated: {
      schemaVersion: 1,
      audit: audit.updated,
      undo: undo.updated,
      touches: (fleet, { data }) => fleet.nodesUsing('l4_upstream', data.upstream_id),
    },
    UpstreamDeleted: { schemaVersion: 1, audit: audit.deleted, undo: undo.deleted, touches: () => [] },
    UpstreamRestored: { schemaVersion: 1, audit: audit.restored, undo: undo.restored, touches: () => [] },
  },
};
