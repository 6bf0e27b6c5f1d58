/**
 * The checkpoints of projections, one document per projection and version, and the version that queries read, one
 * pointer per projection. Implements `read-store.ts` (checkpoints, activeVersion).
 */
import type { Collection } from 'mongodb';
import type { ResumePoint } from '../event-store.js';
import type { ReadStore } from '../read-store.js';
import { isDuplicate } from './failures.js';

export interface MongoCheckpoint extends ResumePoint {
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

export function createProgress(checkpoints: Collection<MongoCheckpoint>, pointers: Collection<MongoPointer>): Progress {
  /** Moves an existing lower checkpoint forward. @returns whether it did */
  async function advance(_id: string, { commit, prepare }: ResumePoint): Promise<boolean> {
    const lower = { _id, $or: [{ commit: { $lt: commit } }, { commit, prepare: { $lt: prepare } }] };
    return (await checkpoints.updateOne(lower, { $set: { commit, prepare } })).matchedCount === 1;
  }

  return {
    async loadCheckpoint(projection, version) {
      const checkpoint = await checkpoints.findOne({ _id: checkpointId(projection, version) });
      return checkpoint === null ? undefined : { commit: checkpoint.commit, prepare: checkpoint.prepare };
    },
    async saveCheckpoint(projection, version, { commit, prepare }) {
      const _id = checkpointId(projection, version);
      if (await advance(_id, { commit, prepare })) return;
      try {
        await checkpoints.insertOne({ _id, commit, prepare });
      } catch (error) {
        if (!isDuplicate(error)) throw error;
        // The stored checkpoint is not lower, or it was inserted meanwhile and may be lower.
        await advance(_id, { commit, prepare });
      }
    },
    async deleteCheckpoint(projection, version) {
      await checkpoints.deleteOne({ _id: checkpointId(projection, version) });
    },
    async activeVersion(projection) {
      return (await pointers.findOne({ _id: projection }))?.version;
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
