/**
 * The messages of `proto/` without the code generated from them: buf reads the files, @bufbuild/protobuf encodes and
 * decodes by what it read. Values have the shape of `src/gen`, from which only types come, so a mistake there shows here.
 */
import { create, fromBinary, toBinary, type DescField, type DescMessage } from '@bufbuild/protobuf';
import { protoFiles } from '../../scripts/agent-fixtures/proto-files.js';
import type { ConfigUpdate, RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import type {
  AgentPayload,
  OpenSessionRequest,
  OpenSessionResponse,
  SecureFrame,
  ServicePayload,
  SessionGrant,
  SessionOffer,
} from '../../src/gen/svc/control/v1/session.js';

/** The messages that tests encode or decode by themselves. */
interface ProtoMessages {
  readonly OpenSessionRequest: OpenSessionRequest;
  readonly OpenSessionResponse: OpenSessionResponse;
  readonly SessionOffer: SessionOffer;
  readonly SessionGrant: SessionGrant;
  readonly SecureFrame: SecureFrame;
  readonly AgentPayload: AgentPayload;
  readonly ServicePayload: ServicePayload;
  readonly ConfigUpdate: ConfigUpdate;
  readonly RuntimeConfigSnapshot: RuntimeConfigSnapshot;
}

type Fields = Readonly<Record<string, unknown>>;

function descriptorOf(name: string): DescMessage {
  const message = protoFiles().getMessage(`svc.control.v1.${name}`);
  if (message === undefined) throw new Error(`proto/ has no message ${name}`);
  return message;
}

/** Bytes of a message; what is left out has its default. */
export function encodeProto<Name extends keyof ProtoMessages>(
  name: Name,
  value: Partial<ProtoMessages[Name]>,
): Uint8Array {
  const descriptor = descriptorOf(name);
  return toBinary(descriptor, messageOf(descriptor, value as Fields));
}

export function decodeProto<Name extends keyof ProtoMessages>(name: Name, bytes: Uint8Array): ProtoMessages[Name] {
  const descriptor = descriptorOf(name);
  return valueOf(descriptor, fromBinary(descriptor, bytes) as unknown as Fields) as unknown as ProtoMessages[Name];
}

/** A oneof is `{ $case, value }` in the shape of `src/gen`, and `{ case, value }` here. */
function messageOf(descriptor: DescMessage, value: Fields): ReturnType<typeof create> {
  const fields: Record<string, unknown> = {};
  for (const field of descriptor.fields) {
    const { oneof } = field;
    if (oneof === undefined) {
      const entry = value[field.localName];
      if (entry !== undefined) fields[field.localName] = converted(field, entry, messageOf);
      continue;
    }
    const chosen = value[oneof.localName] as { readonly $case: string; readonly value: unknown } | undefined;
    if (chosen?.$case !== field.localName) continue;
    fields[oneof.localName] = { case: field.localName, value: converted(field, chosen.value, messageOf) };
  }
  return create(descriptor, fields);
}

function valueOf(descriptor: DescMessage, message: Fields): Fields {
  const value: Record<string, unknown> = {};
  for (const { localName } of descriptor.oneofs) value[localName] = undefined;
  for (const field of descriptor.fields) {
    const { oneof } = field;
    if (oneof === undefined) {
      const entry = message[field.localName];
      value[field.localName] = entry === undefined ? undefined : converted(field, entry, valueOf);
      continue;
    }
    const chosen = message[oneof.localName] as { readonly case?: string; readonly value?: unknown };
    if (chosen.case !== field.localName) continue;
    value[oneof.localName] = { $case: field.localName, value: converted(field, chosen.value, valueOf) };
  }
  return value;
}

function converted(
  field: DescField,
  entry: unknown,
  convert: (descriptor: DescMessage, value: Fields) => unknown,
): unknown {
  const one = (single: unknown): unknown => {
    if (field.message !== undefined) return convert(field.message, single as Fields);
    return single instanceof Uint8Array ? Buffer.from(single) : single;
  };
  return field.fieldKind === 'list' ? (entry as readonly unknown[]).map(one) : one(entry);
}
