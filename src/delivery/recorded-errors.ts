/**
 * The errors of a rejected report as they are recorded: as many as 16 KiB hold, then how many are left out. An agent may
 * report more than one event of the log takes; what it may send never ends its session.
 * Implements `docs/contract/agent-protocol.md#control`, what one node can write into the log.
 */
import { createHash } from 'node:crypto';
import type { ApplyError } from '../domain/agents/facts.js';
import { limits } from '../kernel/limits.js';

/** @param errors as reported; their strings are bounded by the protocol */
export function recordedErrors(errors: readonly ApplyError[]): readonly ApplyError[] {
  let bytes = 0;
  const end = errors.findIndex((error) => {
    bytes += Buffer.byteLength(JSON.stringify(error)) + 1;
    return bytes > limits.agent.recordedErrorBytes;
  });
  if (end === -1) return errors;
  const omitted = errors.length - end;
  const message = `${omitted} more ${omitted === 1 ? 'error is' : 'errors are'} left out: only ${limits.agent.recordedErrorBytes} bytes of them are recorded`;
  return [...errors.slice(0, end), { resource_type: '', resource_id: '', path: '', message }];
}

/** Tells whether two rejects object to the same, without keeping their errors. @param errors as they are recorded */
export function errorsDigest(errors: readonly ApplyError[]): string {
  const texts = errors.map(({ resource_type, resource_id, path, message }) => [
    resource_type,
    resource_id,
    path,
    message,
  ]);
  return createHash('sha256').update(JSON.stringify(texts)).digest('base64');
}
