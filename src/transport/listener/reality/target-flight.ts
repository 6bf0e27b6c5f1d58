/**
 * Reads the first flight of the target: its ServerHello, and how long the encrypted records after it are. Their contents are
 * for nobody but the client, who never sees them. Implements `docs/reality.md#the-flight-of-the-target`.
 */
import {
  changeCipherSpecRecord,
  messageHeaderBytes,
  recordHeaderBytes,
  recordType,
} from '../../../channel/tls/codes.js';
import { createRecordReader } from '../../../channel/tls/record-reader.js';
import { readServerHello } from '../../../channel/tls/server-hello.js';
import type { ServerHello } from '../../../channel/tls/server-hello.js';

export interface TargetFlight {
  readonly serverHello: ServerHello;
  /** Lengths of the whole records: of one that holds all four messages, or of one for each. */
  readonly lengths: readonly [number] | readonly [number, number, number, number];
  /** Length of a record that came right after the flight, such as a ticket. */
  readonly ticket: number | undefined;
}

interface TargetFlightReader {
  /** `unusable`: the target does not answer as it must for REALITY, so its answer goes to the client as it is. */
  push(bytes: Buffer): TargetFlight | 'incomplete' | 'unusable';
}

/** EncryptedExtensions alone are shorter, all messages in one record are longer. */
const oneRecordAbove = 512;

export function createTargetFlightReader(): TargetFlightReader {
  const records = createRecordReader();
  let serverHello: ServerHello | undefined;
  let cipherChanged = false;
  const lengths: number[] = [];

  const flight = (whole: TargetFlight['lengths'], hello: ServerHello): TargetFlight => {
    const after = records.next();
    const isTicket = typeof after === 'object' && after.type === recordType.applicationData;
    return { serverHello: hello, lengths: whole, ticket: isTicket ? after.bytes.length : undefined };
  };

  return {
    push(bytes) {
      records.push(bytes);
      for (;;) {
        const record = records.next();
        if (record === 'incomplete' || record === 'malformed') return record === 'malformed' ? 'unusable' : record;
        if (serverHello === undefined) {
          serverHello = record.type === recordType.handshake ? wholeServerHello(record.bytes) : undefined;
          if (serverHello === undefined) return 'unusable';
        } else if (!cipherChanged) {
          if (!record.bytes.equals(changeCipherSpecRecord)) return 'unusable';
          cipherChanged = true;
        } else {
          if (record.type !== recordType.applicationData) return 'unusable';
          lengths.push(record.bytes.length);
          const [first = 0, second, third, fourth] = lengths;
          if (first > oneRecordAbove) return flight([first], serverHello);
          if (second !== undefined && third !== undefined && fourth !== undefined)
            return flight([first, second, third, fourth], serverHello);
        }
      }
    },
  };
}

/** The record holds the one message. */
function wholeServerHello(record: Buffer): ServerHello | undefined {
  const message = record.subarray(recordHeaderBytes);
  if (message.length < messageHeaderBytes) return undefined;
  return messageHeaderBytes + message.readUIntBE(1, 3) === message.length ? readServerHello(message) : undefined;
}
