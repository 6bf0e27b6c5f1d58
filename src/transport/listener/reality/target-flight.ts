/**
 * Reads the first flight of the target: its ServerHello, and the lengths of the encrypted records after it. Only the
 * client could read their contents, and it never sees them. Implements `docs/reality.md#the-flight-of-the-target`.
 */
import {
  changeCipherSpecRecord,
  messageHeaderBytes,
  recordHeaderBytes,
  recordType,
} from '../../../channel/tls/codes.js';
import { createRecordReader } from '../../../channel/tls/record-reader.js';
import { readServerHello, type ServerHello } from '../../../channel/tls/server-hello.js';
import { tuning } from './tuning.js';

export interface TargetFlight {
  readonly serverHello: ServerHello;
  /** Lengths of the whole records: one record with all four messages, or one record per message. */
  readonly lengths: readonly [number] | readonly [number, number, number, number];
  /** The records that follow, such as tickets. */
  readonly later: RecordLengths;
}

type RecordLengths = ReturnType<typeof createRecordLengths>;

/** Reads only the header of each record. */
function createRecordLengths() {
  let header = Buffer.alloc(0);
  /** Bytes of the last record that are still to come. */
  let passing = 0;
  let count = 0;
  let found: number[] = [];
  return {
    push(bytes: Buffer): void {
      for (let rest = bytes; rest.length > 0;) {
        if (passing > 0) {
          const passed = Math.min(passing, rest.length);
          passing -= passed;
          rest = rest.subarray(passed);
          continue;
        }
        const missing = recordHeaderBytes - header.length;
        header = Buffer.concat([header, rest.subarray(0, missing)]);
        rest = rest.subarray(missing);
        if (header.length < recordHeaderBytes) return;
        passing = header.readUInt16BE(3);
        if (header[0] === recordType.applicationData && count < tuning.recordsAfterFlight) {
          found.push(recordHeaderBytes + passing);
          count += 1;
        }
        header = Buffer.alloc(0);
      }
    },
    /** The lengths of the records whose headers have arrived since the last call; only of the first few dozen. */
    lengths(): readonly number[] {
      const lengths = found;
      found = [];
      return lengths;
    },
  };
}

interface TargetFlightReader {
  /** `unusable`: the target's answer does not fit REALITY, so it goes to the client unchanged. */
  push(bytes: Buffer): TargetFlight | 'incomplete' | 'unusable';
}

/** EncryptedExtensions alone are shorter; all messages in one record are longer. */
const oneRecordAbove = 512;

export function createTargetFlightReader(): TargetFlightReader {
  const records = createRecordReader();
  let serverHello: ServerHello | undefined;
  let cipherChanged = false;
  const lengths: number[] = [];

  const flight = (whole: TargetFlight['lengths'], hello: ServerHello): TargetFlight => {
    const later = createRecordLengths();
    later.push(records.rest());
    return { serverHello: hello, lengths: whole, later };
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

/** Requires that the record holds exactly this message. */
function wholeServerHello(record: Buffer): ServerHello | undefined {
  const message = record.subarray(recordHeaderBytes);
  if (message.length < messageHeaderBytes) return undefined;
  return messageHeaderBytes + message.readUIntBE(1, 3) === message.length ? readServerHello(message) : undefined;
}
