/** Collects the first flight of a client, in any number of pieces and records, until its ClientHello is there. */
import type { ClientHello } from '../../../channel/tls/client-hello.js';
import { readClientHello } from '../../../channel/tls/client-hello.js';
import { messageType, recordHeaderBytes, recordType } from '../../../channel/tls/codes.js';
import { createMessageReader } from '../../../channel/tls/message-reader.js';
import { createRecordReader } from '../../../channel/tls/record-reader.js';
import { tuning } from './tuning.js';

interface HelloCollector {
  /** Takes what came; `other` as soon as it is clear that it does not begin with a ClientHello, and nothing but that. */
  push(bytes: Buffer): ClientHello | 'incomplete' | 'other';
}

export function createHelloCollector(): HelloCollector {
  const records = createRecordReader();
  const messages = createMessageReader(tuning.clientHelloMaxBytes);
  return {
    push(bytes) {
      records.push(bytes);
      for (;;) {
        const record = records.next();
        if (record === 'incomplete') return records.rest().length > tuning.clientHelloMaxBytes ? 'other' : 'incomplete';
        if (record === 'malformed' || record.type !== recordType.handshake) return 'other';
        const content = record.bytes.subarray(recordHeaderBytes);
        if (content.length === 0) return 'other';
        messages.push(content);
        const message = messages.next();
        if (message === 'incomplete') continue;
        if (message === 'malformed' || message.type !== messageType.clientHello) return 'other';
        // A client says no more before it has an answer.
        if (messages.partial || records.rest().length > 0) return 'other';
        return readClientHello(message.bytes) ?? 'other';
      }
    },
  };
}
