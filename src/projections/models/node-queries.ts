/**
 * Queries of the nodes' read model. It does not hold the status: the caller passes the ids of nodes that are online.
 * Implements `docs/contract/rest.md#nodes`.
 */
import { documentOrder, matchesAll } from '../../storage/field-values.js';
import type { Collection, Filter, StoredDocument } from '../../storage/read-store.js';
import type { ListOf, NodeListQuery, NodeRecord, Projections } from '../port.js';
import { labelEntry, nodeRecord } from './nodes.js';
import type { NodeFields } from './nodes.js';
import { listQuery, nameFilter, pageOf, sortOf } from './sorted-list.js';
import { tuning } from '../tuning.js';

type Nodes = Collection<NodeFields>;
type Documents = readonly StoredDocument<NodeFields>[];

function labelFilter({ label }: NodeListQuery): readonly Filter[] {
  return label === undefined ? [] : [{ field: 'labels', op: 'eq', value: labelEntry(label.key, label.value) }];
}

const records = (documents: Documents): readonly NodeRecord[] => documents.map(({ fields }) => nodeRecord(fields));

/** The nodes of these ids that match, sorted and paged here, because the store cannot join with a set of ids. */
async function listAmong(nodes: Nodes, ids: readonly string[], query: NodeListQuery): Promise<ListOf<NodeRecord>> {
  const where = [...labelFilter(query), ...nameFilter(query.q)];
  const matching = (await nodes.getMany([...new Set(ids)])).filter(({ fields }) => matchesAll(fields, where));
  const sorted = [...matching].sort(documentOrder(sortOf(query.sort)));
  const { skip, limit } = pageOf(query);
  return { items: records(sorted.slice(skip, skip + limit)), total: sorted.length };
}

/** All nodes but some: walks the sorted list in steps. */
async function listWithout(
  nodes: Nodes,
  without: { readonly notIn: ReadonlySet<string>; readonly connectedOnce: boolean },
  query: NodeListQuery,
): Promise<ListOf<NodeRecord>> {
  const connected: Filter = { field: 'connected_once', op: 'eq', value: without.connectedOnce };
  const all = listQuery(query, [connected, ...labelFilter(query)]);
  const { skip, limit } = pageOf(query);
  const items: StoredDocument<NodeFields>[] = [];
  let total = 0;
  for (let start = 0; ; start += tuning.scanDocuments) {
    const step = await nodes.find({ ...all, skip: start, limit: tuning.scanDocuments });
    for (const document of step.items) {
      if (without.notIn.has(document.id)) continue;
      if (total >= skip && items.length < limit) items.push(document);
      total += 1;
    }
    if (step.items.length < tuning.scanDocuments) return { items: records(items), total };
  }
}

/** @param open returns the collection, or throws `unavailable` while the read models cannot be queried */
export function nodeQueries(open: () => Nodes): Projections['nodes'] {
  return {
    async get(id) {
      const document = await open().get(id);
      return document === undefined ? undefined : nodeRecord(document.fields);
    },
    async getMany(ids) {
      return records(await open().getMany(ids));
    },
    async list(query) {
      const { ids } = query;
      if (ids === undefined) {
        const { items, total } = await open().find(listQuery(query, labelFilter(query)));
        return { items: records(items), total };
      }
      return 'in' in ids ? listAmong(open(), ids.in, query) : listWithout(open(), ids, query);
    },
  };
}
