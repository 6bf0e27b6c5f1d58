/**
 * The header list of a call: how large it is, and the few headers that the service reads. The rest is dropped at the door,
 * so that a call which waits holds nothing of it. Pure. Implements the bound on header lists of
 * `docs/contract/agent-protocol.md#the-listener`.
 */

/** What the gRPC library needs of a request to answer it. */
const read = [':path', 'content-type', 'grpc-timeout', 'grpc-encoding'];
/** Longer ones are none that the service knows, and are dropped like the others. */
const valueChars = 256;
/** What a header counts beyond its name and value (RFC 9113, section 6.5.2). */
const bytesPerHeader = 32;

/**
 * Size as RFC 9113 counts it, in bytes.
 * @param list names and values in turn
 */
export function headerListBytes(list: readonly string[]): number {
  let bytes = (list.length / 2) * bytesPerHeader;
  for (const text of list) bytes += text.length;
  return bytes;
}

/** The headers that the service reads. */
export function readHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of read) {
    const value = headers[name];
    if (typeof value === 'string' && value.length <= valueChars) kept[name] = value;
  }
  return kept;
}
