/**
 * Encodes a snapshot once, checksum included, as the bytes of a whole ServicePayload that every stream shares.
 * The checksum is SHA-256 over the deterministic encoding of the snapshot without its checksum. If this file or
 * `wire.ts` starts to give other bytes for the same input, the compiler's output changes: raise `compilerVersion` too.
 * Implements `docs/contract/wire.md#configuration`.
 */
import { createHash } from 'node:crypto';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import type { NodeSnapshot } from '../domain/snapshot/snapshot.js';
import { RuntimeConfigSnapshot } from '../gen/svc/control/v1/config.js';
import type { SnapshotPush } from './port.js';
import type { OpenedSecrets } from './secrets.js';
import { wireParts } from './wire.js';

const lengthDelimited = 2;
/** Field numbers of `ServicePayload.config_update` and `ConfigUpdate.snapshot`; a test compares them with the proto. */
const configUpdateField = 2;
const snapshotField = 1;

const noBytes = Buffer.alloc(0);
const emptySnapshot: RuntimeConfigSnapshot = {
  nodeId: '',
  generation: 0n,
  checksum: noBytes,
  gateway: undefined,
  l3: undefined,
  node: undefined,
};

const encoded = (part: Partial<RuntimeConfigSnapshot>): Uint8Array =>
  RuntimeConfigSnapshot.encode({ ...emptySnapshot, ...part }).finish();

/** The snapshot as it is sent to the agent. The same input always gives the same bytes. */
export function encodeSnapshot(snapshot: NodeSnapshot, secrets: OpenedSecrets): SnapshotPush {
  // In three parts, because the checksum (field 3) is between the parts that are hashed: nothing is encoded twice.
  const head = encoded({ nodeId: snapshot.node_id, generation: BigInt(snapshot.generation) });
  const tail = encoded(wireParts(snapshot, secrets));
  const checksum = createHash('sha256').update(head).update(tail).digest();
  const payload = new BinaryWriter()
    .uint32((configUpdateField << 3) | lengthDelimited)
    .fork()
    .uint32((snapshotField << 3) | lengthDelimited)
    .fork()
    .raw(head)
    .raw(encoded({ checksum }))
    .raw(tail)
    .join()
    .join()
    .finish();
  return { generation: snapshot.generation, checksum, payload };
}
