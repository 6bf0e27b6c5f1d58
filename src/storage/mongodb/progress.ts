/**
 * The checkpoints of projections, one document per projection and version, and the version that queries read, one
 * pointer per projection. Implements `read-store.ts` (checkpoints, activeVersion).
 */
import type { Collection } from 'mongodb';
import type { Checkpoint, ReadStore } from '../read-store.js';
import { isDuplicate } from './failures.js';
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
  /** Advances an existing lower checkpoint. @returns whether it did */
  async function advance(_id: string, checkpoint: Checkpoint): Promise<boolean> {
    const { commit, prepare } = checkpoint;
    const lower = { _id, $or: [{ commit: { $lt: commit } }, { commit, prepare: { $lt: prepare } }] };
    return (await checkpoints.updateOne(lower, { $set: checkpoint })).matchedCount === 1;
  }

  return {
    async loadCheckpoint(projection, version) {
      const checkpoint = await checkpoints.findOne({ _id: checkpointId(projection, version) }, reading);
      return checkpoint === null ? undefined : fieldsOf(checkpoint);
    },
    async saveCheckpoint(projection, version, checkpoint) {
      const _id = checkpointId(projection, version);
      const fields = fieldsOf(checkpoint);
      if (await advance(_id, fields)) return;
      try {
        await checkpoints.insertOne({ _id, ...fields });
      } catch (error) {
        if (!isDuplicate(error)) throw error;
        // The stored checkpoint is not lower, or one was inserted meanwhile that may be lower.
        await advance(_id, fields);
      }
    },
    async deleteCheckpoint(projection, version) {
      await checkpoints.deleteOne({ _id: checkpointId(projection, version) });
    },
    async activeVersion(projection) {
      return (await pointers.findOne({ _id: projection }, reading))?.version;
    },
    async activate(projection, version) {
      const point = () => pointers.replaceOne({ _id: projection }, { version }, { upsert: true });
      try {
        await point();
      } catch (error) {
        if (!isDuplicate(error)) throw error;
        await point();
      }
    },
  };
}
