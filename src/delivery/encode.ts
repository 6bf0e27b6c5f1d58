/**
 * Encodes a snapshot once, with its checksum, as the bytes of a whole ServicePayload that all streams share. The checksum is
 * SHA-256 over the encoded snapshot without it. A change here or in `wire.ts` that gives other bytes for the same input changes
 * the compiler's output: raise `compilerVersion` too. Implements `docs/contract/wire.md#configuration`.
 */
import { hash } from 'node:crypto';
import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire';
import type { NodeSnapshot } from '../domain/snapshot/snapshot.js';
import { RuntimeConfigSnapshot } from '../gen/svc/control/v1/config.js';
import type { SnapshotPush } from './port.js';
import type { SecretOpener } from './secrets.js';
import { wireParts, type WireParts } from './wire.js';

const lengthDelimited = 2;
/** Field numbers of `ServicePayload.config_update` and `ConfigUpdate.snapshot`; a test compares them with the proto. */
const configUpdateField = 2;
const snapshotField = 1;

const noBytes = Buffer.alloc(0);
const checksumBytes = 32;
/** Tag and length of `RuntimeConfigSnapshot.checksum`. */
const checksumHead = Uint8Array.of((3 << 3) | lengthDelimited, checksumBytes);
/** A writer that has needed more memory is not kept. */
const keptWriterBytes = 256 * 1024;

/** Reused, because growing a new writer for each node costs as much as writing. */
let sharedWriter = new BinaryWriter();

/** The same input always gives the same bytes. @throws SecretUnreadableError of `open` */
export function encodeSnapshot(snapshot: NodeSnapshot, open: SecretOpener): SnapshotPush {
  let secrets = 0;
  const parts = wireParts(snapshot, (placeholder) => {
    secrets += 1;
    return open(placeholder);
  });
  // A writer keeps in memory what it has written; secrets must not stay there.
  if (secrets > 0) return encodeWith(new BinaryWriter(), snapshot, parts);
  const writer = sharedWriter;
  // After an error, the writer holds half a message and is not used again.
  sharedWriter = new BinaryWriter();
  const push = encodeWith(writer, snapshot, parts);
  if (push.payload.length <= keptWriterBytes) sharedWriter = writer;
  return push;
}

function encodeWith(writer: BinaryWriter, snapshot: NodeSnapshot, { gateway, l3, node }: WireParts): SnapshotPush {
  const { node_id: nodeId, generation } = snapshot;
  const hashed = RuntimeConfigSnapshot.encode(
    { nodeId, generation: BigInt(generation), checksum: noBytes, gateway, l3, node },
    writer,
  ).finish();
  const checksum = Buffer.from(hash('sha256', hashed, 'hex'), 'hex');
  // The checksum (field 3) goes into the hashed bytes, after the node's id and the generation.
  const headBytes = textFieldBytes(nodeId) + (generation === 0 ? 0 : 1 + varintBytes(generation));
  const bytes = hashed.length + checksumHead.length + checksumBytes;
  const payload = writer
    .uint32((configUpdateField << 3) | lengthDelimited)
    .uint32(1 + varintBytes(bytes) + bytes)
    .uint32((snapshotField << 3) | lengthDelimited)
    .uint32(bytes)
    .raw(hashed.subarray(0, headBytes))
    .raw(checksumHead)
    .raw(checksum)
    .raw(hashed.subarray(headBytes))
    .finish();
  return { generation, checksum, payload };
}

const confirmWithinField = 7;

/** The snapshot as it is sent to an agent that waits for its confirmation: the same one with `confirm_within_secs`. */
export function confirmedWithin(push: SnapshotPush, secs: number): SnapshotPush {
  const reader = new BinaryReader(push.payload);
  reader.tag();
  reader.uint32();
  reader.tag();
  const snapshot = reader.bytes();
  const bytes = snapshot.length + 1 + varintBytes(secs);
  const payload = new BinaryWriter()
    .uint32((configUpdateField << 3) | lengthDelimited)
    .uint32(1 + varintBytes(bytes) + bytes)
    .uint32((snapshotField << 3) | lengthDelimited)
    .uint32(bytes)
    .raw(snapshot)
    .uint32(confirmWithinField << 3)
    .uint32(secs)
    .finish();
  return { ...push, payload };
}

/** Bytes of a text field; proto3 omits an empty one. */
function textFieldBytes(text: string): number {
  if (text === '') return 0;
  const bytes = Buffer.byteLength(text);
  return 1 + varintBytes(bytes) + bytes;
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes += 1;
  return bytes;
}
