/** Finds the ClientHello that a connection starts with, in any records and pieces. Bounded; accepts any bytes. */
import { messageType, recordHeaderBytes, recordType } from './codes.js';
import { createMessageReader } from './message-reader.js';
import { createRecordReader } from './record-reader.js';

/** The largest ClientHello; browsers send 2 KiB. */
export const clientHelloMaxBytes = 16 * 1024;

export interface CollectedHello {
  /** The message with its header; its contents may be malformed. */
  readonly message: Buffer;
  /** Whether more bytes than the message have been pushed. */
  readonly followed: boolean;
}

export interface HelloCollector {
  /** Takes received bytes; `other` as soon as it is clear that they do not start with a ClientHello. */
  push(bytes: Buffer): CollectedHello | 'incomplete' | 'other';
}

/** @param maxRecords in how many records the ClientHello may be */
export function createHelloCollector(maxRecords: number): HelloCollector {
  const records = createRecordReader();
  const messages = createMessageReader(clientHelloMaxBytes);
  let count = 0;
  return {
    push(bytes) {
      records.push(bytes);
      for (;;) {
        const record = records.next();
        if (record === 'incomplete') return records.waiting > clientHelloMaxBytes ? 'other' : 'incomplete';
        if (record === 'malformed' || record.type !== recordType.handshake) return 'other';
        const content = record.bytes.subarray(recordHeaderBytes);
        count += 1;
        if (content.length === 0 || count > maxRecords) return 'other';
        messages.push(content);
        const message = messages.next();
        if (message === 'incomplete') continue;
        if (message === 'malformed' || message.type !== messageType.clientHello) return 'other';
        return { message: message.bytes, followed: messages.partial || records.waiting > 0 };
      }
    },
  };
}
