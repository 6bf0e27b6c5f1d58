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
const checksumBytes = 32;
/** `RuntimeConfigSnapshot.checksum` as it is encoded: its tag and its length come first. */
const checksumHead = Uint8Array.of((3 << 3) | lengthDelimited, checksumBytes);
/** A writer keeps the memory of the largest snapshot that it has written. */
const keptWriterBytes = 256 * 1024;

/** Reused, because to grow a new one for each of ten thousand nodes costs as much as to write them. */
let sharedWriter = new BinaryWriter();

/** The snapshot as it is sent to the agent. The same input always gives the same bytes. */
export function encodeSnapshot(snapshot: NodeSnapshot, secrets: OpenedSecrets): SnapshotPush {
  // What a writer has written stays in its memory, which secrets must not.
  if (secrets.size > 0) return encodeWith(new BinaryWriter(), snapshot, secrets);
  const writer = sharedWriter;
  // After an error the writer holds half a message: only one that comes to its end is used again.
  sharedWriter = new BinaryWriter();
  const push = encodeWith(writer, snapshot, secrets);
  if (push.payload.length <= keptWriterBytes) sharedWriter = writer;
  return push;
}

function encodeWith(writer: BinaryWriter, snapshot: NodeSnapshot, secrets: OpenedSecrets): SnapshotPush {
  const generation = BigInt(snapshot.generation);
  const { gateway, l3, node } = wireParts(snapshot, secrets);
  // In two parts, because the checksum (field 3) is between the parts that are hashed: nothing is encoded twice.
  const head = RuntimeConfigSnapshot.encode(
    { nodeId: snapshot.node_id, generation, checksum: noBytes, gateway: undefined, l3: undefined, node: undefined },
    writer,
  ).finish();
  const tail = RuntimeConfigSnapshot.encode(
    { nodeId: '', generation: 0n, checksum: noBytes, gateway, l3, node },
    writer,
  ).finish();
  const checksum = createHash('sha256').update(head).update(tail).digest();
  const bytes = head.length + checksumHead.length + checksumBytes + tail.length;
  const payload = writer
    .uint32((configUpdateField << 3) | lengthDelimited)
    .uint32(1 + varintBytes(bytes) + bytes)
    .uint32((snapshotField << 3) | lengthDelimited)
    .uint32(bytes)
    .raw(head)
    .raw(checksumHead)
    .raw(checksum)
    .raw(tail)
    .finish();
  return { generation: snapshot.generation, checksum, payload };
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest > 0x7f; rest >>>= 7) bytes += 1;
  return bytes;
}
