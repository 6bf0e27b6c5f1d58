/**
 * Checks that the index of a collection finds every document that belongs to it: lists read only the index. Changes nothing.
 * While a service writes, a difference counts only if it remains. Implements
 * `docs/how-to/restore.md#read-models-that-differ-from-the-log`.
 */
import { createHash } from 'node:crypto';
import { sleep } from '../../kernel/background.js';
import { placeIn } from '../../storage/group-index.js';
import type { Collection, IndexSpec } from '../../storage/read-store.js';
import { tuning } from '../tuning.js';

/** @returns a sentence for each group whose index is wrong; undefined when the signal ended the check */
export async function indexDifferences(
  name: string,
  collection: Collection,
  index: IndexSpec,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const differences: string[] = [];
  const groups = new Map<string, string>();
  for await (const { id, group } of members(collection, index)) groups.set(group, withMember(groups.get(group), id));
  for (const [group, expected] of groups) {
    if (signal.aborted) return undefined;
    let found: string | undefined;
    for (const id of await idsFound(collection, group)) found = withMember(found, id);
    if (found === expected && (await collection.count({ groups: [group] })) === countOf(expected)) continue;
    const difference = await lasting(collection, index, group);
    if (difference !== undefined) differences.push(`${name}: ${difference}`);
  }
  return differences;
}

/** A digest of a group: the number of its members, and an order-independent sum over them. */
function withMember(group: string | undefined, id: string): string {
  const [count = 0, sum = 0] = group?.split(' ').map(Number) ?? [];
  return `${count + 1} ${(sum + createHash('sha256').update(id).digest().readUIntBE(0, 6)) % 2 ** 48}`;
}
const countOf = (group: string): number => Number(group.split(' ')[0]);

/** The documents of each group, by their own fields. */
async function* members(
  collection: Collection,
  index: IndexSpec,
): AsyncGenerator<{ readonly id: string; readonly group: string }, void, void> {
  for (let after: string | undefined; ;) {
    const items = await collection.list(after, tuning.compareDocuments);
    for (const { id, fields } of items) {
      for (const group of placeIn(index, fields)?.groups ?? []) yield { id, group };
    }
    after = items.at(-1)?.id;
    if (items.length < tuning.compareDocuments) return;
  }
}

async function lasting(collection: Collection, index: IndexSpec, group: string): Promise<string | undefined> {
  for (let round = 1; ; round += 1) {
    const belonging = new Set<string>();
    for await (const member of members(collection, index)) if (member.group === group) belonging.add(member.id);
    const found = await idsFound(collection, group);
    const missing = [...belonging].filter((id) => !found.has(id));
    const total = await collection.count({ groups: [group] });
    if (missing.length === 0 && found.size === belonging.size && total === belonging.size) return undefined;
    if (round >= tuning.compareRounds) {
      const such = missing[0] === undefined ? '' : `, such as ${missing[0]}`;
      return `the index finds ${found.size} documents of "${group}" and counts ${total}; ${belonging.size} say that they are in it${such}`;
    }
    await sleep(2 * tuning.checkpointEveryMs);
  }
}

async function idsFound(collection: Collection, group: string): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  for (let skip = 0; ; skip += tuning.compareDocuments) {
    const items = await collection.find({ groups: [group], direction: 'asc', skip, limit: tuning.compareDocuments });
    for (const { id } of items) ids.add(id);
    if (items.length < tuning.compareDocuments) return ids;
  }
}
