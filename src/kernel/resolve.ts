/** The addresses of names, for programs that dial many: a lookup holds one of four threads while a name server is silent. */
import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import type { TcpNetConnectOpts } from 'node:net';
import { callbackify } from 'node:util';
import { getOrMake } from './maps.js';

const running = new Map<string, Promise<LookupAddress[]>>();

/** At least one. Who asks while the name is looked up gets the same answer, so that no name keeps others waiting. */
export function addressesOf(host: string): Promise<LookupAddress[]> {
  return getOrMake(running, host, () => lookup(host, { all: true }).finally(() => running.delete(host)));
}

const lookUp = callbackify(addressesOf);

/** Options of `net.connect` to a name, of whose addresses each gets a quarter of the time. */
export function byName(connectMs: number): Partial<TcpNetConnectOpts> {
  return {
    lookup: (host, _options, done) => lookUp(host, done),
    autoSelectFamily: true,
    // By itself, Node gives each but the last one 250 ms, less than a far or lossy way takes.
    autoSelectFamilyAttemptTimeout: connectMs / 4,
  };
}
