/** Events as other programs write them, without their ids. */

const bytes = (text: string): Uint8Array => Buffer.from(text);
const metadata = bytes(
  JSON.stringify({
    command: { id: 'c', index: 0, count: 1 },
    actor: { type: 'user', id: 'u', name: 'Ada' },
    request_id: 'r',
    occurred_at: '2026-01-02T03:04:05.678Z',
    schema_version: 1,
  }),
);
const order = bytes('{"order":1}');
const none = new Uint8Array();

export const foreignKinds = {
  withoutMetadata: { type: 'OrderPlaced', isJson: true, data: order, metadata: none },
  foreignMetadata: { type: 'OrderPlaced', isJson: true, data: order, metadata: bytes('{"$correlationId":"x"}') },
  binary: { type: 'OrderPlaced', isJson: false, data: new Uint8Array([0, 255, 1]), metadata: none },
  malformedMetadata: { type: 'OrderPlaced', isJson: true, data: order, metadata: bytes('{"command"') },
  malformedData: { type: 'OrderPlaced', isJson: true, data: bytes('{"order"'), metadata },
  listData: { type: 'OrderPlaced', isJson: true, data: bytes('[]'), metadata },
  link: { type: '$>', isJson: false, data: bytes('0@orders'), metadata: none },
} as const;
