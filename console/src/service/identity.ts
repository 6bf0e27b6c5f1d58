/** Queries and commands of the identity of the service. */
import { api, dataOf, type Schemas } from '../shared/api/client.js';
import { findIn } from '../shared/api/crud.js';
import { read } from '../shared/api/read.js';
import { isBehind } from './identity-standing.js';

export type Identity = Schemas['ServiceIdentity'];

export const identityQuery = read('service', '/api/service/identity', {}, { follows: ['node', 'agent'] });

/** @throws Refusal */
export const rotateIdentity = (): Promise<Identity> => dataOf(api.POST('/api/service/identity/rotate'));

/** @param force even while nodes need the old key. @throws Refusal, which names them */
export const retireIdentity = (force: boolean): Promise<Identity> =>
  dataOf(api.POST('/api/service/identity/retire', { body: { force } }));

type Node = Schemas['Node'];

/** How many of the nodes that are behind are shown. */
const shown = 20;
const walkedAtOnce = 500;

/** Walks over the nodes until it has enough that are behind. @throws Refusal */
export async function findBehind(since: string, signal: AbortSignal): Promise<readonly Node[]> {
  const found: Node[] = [];
  let after: string | null = 'start';
  while (after !== null && found.length < shown) {
    const read: Awaited<ReturnType<typeof findIn<'node'>>> = await findIn(
      'node',
      { after, page_size: walkedAtOnce },
      signal,
    );
    found.push(...read.items.filter((node) => isBehind(node, since)));
    after = 'next' in read ? (read.next ?? null) : null;
  }
  return found.slice(0, shown);
}
