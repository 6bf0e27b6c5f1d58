/**
 * What is known of each node that has a session here: which snapshot is kept of it and which it rejected. Loaded once
 * when its first session asks, from the recorded facts and the kept snapshots; verdicts outlive the session, for "once
 * more" is counted per instance. Implements `docs/contract/agent-protocol.md#configuration` ("Target").
 */
import { timedOut, withDeadline } from '../kernel/background.js';
import { ServiceError } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import { createBoundedMap } from '../kernel/bounded-map.js';
import type { KeptSnapshots } from './last-good.js';
import type { RecordedVerdicts, Standing } from './target.js';
import { standingOf } from './target.js';

/** One node's standing, shared by its sessions. */
export interface StandingRecord {
  readonly nodeId: string;
  standing: Standing;
  /** False when its next verdict is a fact even as a repeat: the last was not recorded, or it ends a version conflict. */
  recorded: boolean;
}

export interface Standings {
  /** @throws ServiceError `unavailable` when the read store does not answer in time */
  load(nodeId: string): Promise<StandingRecord>;
  /** The record if it is loaded. */
  peek(nodeId: string): StandingRecord | undefined;
  /** The node's last session has gone: only its verdicts are remembered. */
  rest(nodeId: string): void;
  forget(nodeId: string): void;
  /** How many nodes with a session here rejected their newest generation, which `newest` tells. */
  rejecting(newest: (nodeId: string) => number | undefined): number;
}

export interface StandingsDeps {
  readonly kept: Pick<KeptSnapshots, 'stamp'>;
  nodeFacts(nodeId: string): Promise<RecordedVerdicts | undefined>;
}

interface Active {
  record: StandingRecord | undefined;
  readonly loading: Promise<StandingRecord>;
}

export function createStandings(deps: StandingsDeps): Standings {
  const active = new Map<string, Active>();
  const rested = createBoundedMap<string, Pick<StandingRecord, 'standing' | 'recorded'>>(
    limits.delivery.rememberedNodes,
  );

  const read = async (nodeId: string): Promise<StandingRecord> => {
    const reading = Promise.all([deps.nodeFacts(nodeId), deps.kept.stamp(nodeId)]);
    const answer = await withDeadline(reading, limits.delivery.requestWaitMs);
    if (answer === timedOut) throw new ServiceError('unavailable', 'the read store does not answer');
    const [facts, kept] = answer;
    const remembered = rested.get(nodeId);
    rested.delete(nodeId);
    // What was recorded a moment ago may not be in the facts yet: what is remembered counts as well.
    const conflict = (facts?.version_conflict_at ?? null) !== null;
    const recorded = !conflict && remembered?.recorded !== false;
    return { nodeId, standing: standingOf(remembered?.standing, facts, kept), recorded };
  };

  const load = (nodeId: string): Promise<StandingRecord> => {
    const known = active.get(nodeId);
    if (known !== undefined) return known.loading;
    const loading = read(nodeId).then(
      (record) => {
        entry.record = record;
        return record;
      },
      (error: unknown) => {
        if (active.get(nodeId) === entry) active.delete(nodeId);
        throw error;
      },
    );
    const entry: Active = { record: undefined, loading };
    active.set(nodeId, entry);
    return loading;
  };

  return {
    load,
    peek: (nodeId) => active.get(nodeId)?.record,
    rest(nodeId) {
      const record = active.get(nodeId)?.record;
      active.delete(nodeId);
      if (record === undefined) return;
      const { standing, recorded } = record;
      if (standing.rejected.length > 0 || !recorded) rested.set(nodeId, { standing, recorded });
    },
    forget(nodeId) {
      active.delete(nodeId);
      rested.delete(nodeId);
    },
    rejecting(newest) {
      let count = 0;
      for (const [nodeId, { record }] of active) {
        const generation = newest(nodeId);
        if (record?.standing.rejected.some((stamp) => stamp.generation === generation)) count += 1;
      }
      return count;
    },
  };
}
