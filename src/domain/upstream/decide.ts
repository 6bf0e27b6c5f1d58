/** Decides commands about upstreams. Implements `docs/contract/rest.md#l4-upstreams`. */
import { err, ok } from '../../kernel/result.js';
import { changesOf, withChanges } from '../resource/change.js';
import type { Decisions } from '../resource/declaration.js';
import { pick } from '../resource/lifecycle.js';
import { existing, exists, nameTaken, stillUsed, unlessRefused } from '../resource/rules.js';
import type { UpstreamCommand, UpstreamEvent } from './upstream.js';
import { upstreamFields, upstreamKey } from './upstream.js';

export const decideUpstream: Decisions<UpstreamCommand, UpstreamEvent> = {
  CreateUpstream(fleet, { type: _, id, ...fields }) {
    const event: UpstreamEvent = { type: 'UpstreamCreated', data: { upstream_id: id, ...fields } };
    return unlessRefused(nameTaken(fleet, upstreamKey.type, fields.name), event);
  },
  UpdateUpstream(fleet, command) {
    const upstream = existing(fleet, upstreamKey, command);
    if (!upstream.ok) return err(upstream.error);
    const { id } = upstream.value;
    const changes = changesOf(upstream.value, command, upstreamFields);
    if (Object.keys(changes).length === 0) return ok([]);
    const objection = fleet.objectionTo(upstreamKey.type, withChanges(upstream.value, changes));
    return unlessRefused(objection, { type: 'UpstreamUpdated', data: { upstream_id: id, changes } });
  },
  DeleteUpstream(fleet, command) {
    const upstream = existing(fleet, upstreamKey, command);
    if (!upstream.ok) return err(upstream.error);
    const data = { upstream_id: upstream.value.id, ...pick(upstream.value, upstreamFields) };
    return unlessRefused(stillUsed(fleet, upstreamKey.type, upstream.value), { type: 'UpstreamDeleted', data });
  },
  RestoreUpstream(fleet, { type: _, id, ...fields }) {
    const event: UpstreamEvent = { type: 'UpstreamRestored', data: { upstream_id: id, ...fields } };
    return unlessRefused(exists(fleet, upstreamKey.type, id) ?? nameTaken(fleet, upstreamKey.type, fields.name), event);
  },
};
