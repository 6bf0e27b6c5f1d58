/** Which bytes this process holds in memory, to prove that a secret is held only sealed. Not a test. */
import { Session } from 'node:inspector';

/**
 * How many byte arrays of this process hold these bytes, those of the caller included. Only arrays that something can
 * still reach: garbage is collected first. What Node's pool of small buffers keeps of dropped ones does not count.
 */
export function arraysHolding(bytes: Uint8Array): number {
  const session = new Session();
  session.connect();
  const post = <T>(method: string, parameters: object): T => {
    let outcome: { readonly error: Error | null; readonly result: unknown } | undefined;
    // In the same thread the answer comes before the call returns.
    session.post(method, parameters, (error, result) => (outcome = { error, result }));
    if (outcome === undefined || outcome.error !== null) throw new Error(`${method}: ${String(outcome?.error)}`);
    return outcome.result as T;
  };
  try {
    type Found = { readonly result: { readonly objectId: string } };
    const prototype = post<Found>('Runtime.evaluate', { expression: 'Uint8Array.prototype' }).result;
    const { objects } = post<{ readonly objects: { readonly objectId: string } }>('Runtime.queryObjects', {
      prototypeObjectId: prototype.objectId,
    });
    const search = `function (hex, pool) {
      const wanted = hex.match(/../g).map((byte) => parseInt(byte, 16));
      const holds = (array) => {
        for (let at = array.indexOf(wanted[0]); at >= 0; at = array.indexOf(wanted[0], at + 1)) {
          if (wanted.every((byte, index) => array[at + index] === byte)) return true;
        }
        return false;
      };
      return this.filter((array) => ArrayBuffer.isView(array) && array.length !== pool && holds(array)).length;
    }`;
    const { result } = post<{ readonly result: { readonly value: number } }>('Runtime.callFunctionOn', {
      objectId: objects.objectId,
      functionDeclaration: search,
      arguments: [{ value: Buffer.from(bytes).toString('hex') }, { value: Buffer.poolSize }],
      returnByValue: true,
    });
    return result.value;
  } finally {
    session.disconnect();
  }
}
