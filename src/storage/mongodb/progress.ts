/**
 * The checkpoints of projections, one document per projection and version, and the version that queries read, one
 * pointer per projection. Implements `read-store.ts` (checkpoints, activeVersion).
 */
import type { Collection } from 'mongodb';
import type { Checkpoint, ReadStore } from '../read-store.js';
import { replaceOrInsert } from './failures.js';
import { reading } from './tuning.js';

export interface MongoCheckpoint extends Checkpoint {
  readonly _id: string;
}

export interface MongoPointer {
  readonly _id: string;
  readonly version: number;
}

type Progress = Pick<
  ReadStore,
  'loadCheckpoint' | 'saveCheckpoint' | 'deleteCheckpoint' | 'activeVersion' | 'activate'
>;

const checkpointId = (projection: string, version: number): string => `${projection}@${version}`;

const fieldsOf = ({ commit, prepare, anchors }: Checkpoint): Checkpoint => ({ commit, prepare, anchors });

export function createProgress(checkpoints: Collection<MongoCheckpoint>, pointers: Collection<MongoPointer>): Progress {
  return {
    async loadCheckpoint(projection, version) {
      const checkpoint = await checkpoints.findOne({ _id: checkpointId(projection, version) }, reading);
      return checkpoint === null ? undefined : fieldsOf(checkpoint);
    },
    async saveCheckpoint(projection, version, checkpoint) {
      const _id = checkpointId(projection, version);
      const { commit, prepare } = checkpoint;
      const lower = { _id, $or: [{ commit: { $lt: commit } }, { commit, prepare: { $lt: prepare } }] };
      const save = () => replaceOrInsert(checkpoints, lower, { _id, ...fieldsOf(checkpoint) });
      // Tries again: the stored checkpoint is not lower, or was inserted meanwhile and may be lower.
      if (!(await save())) await save();
    },
    async deleteCheckpoint(projection, version) {
      await checkpoints.deleteOne({ _id: checkpointId(projection, version) });
    },
    async activeVersion(projection) {
      return (await pointers.findOne({ _id: projection }, reading))?.version;
    },
    async activate(projection, version) {
      const point = () => replaceOrInsert(pointers, { _id: projection }, { _id: projection, version });
      if (!(await point())) await point();
    },
  };
}
