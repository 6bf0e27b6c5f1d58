/**
 * Finds things by name, address or port: resources of every type that has a list, sets of the fleet file, listeners.
 */
import { setsQuery } from '../fleet-file/fleet-file.js';
import { portsQuery } from '../ports/ports.js';
import { portsSearch } from '../ports/ports-search.js';
import { findIn, listedTypes, nameOf, type ListedType } from '../shared/api/crud.js';
import { queryClient } from '../shared/live/queries.js';
import { formatListener } from '../shared/ui/format.js';
import { pagesOf, typeNames, type ResourceLinkTarget } from '../shared/ui/resource-link.js';
import type { Verb, Wanted } from './palette-items.js';
import { text } from './shell.text.js';

export interface Found {
  readonly key: string;
  readonly label: string;
  readonly hint: string;
  readonly link: ResourceLinkTarget;
}

/** How many of each type are shown. */
const shown = 5;

/** Types that the service shows only to admins. */
const forAdmins: readonly ListedType[] = ['webhook', 'user'];

const typeOf = { deploy: 'l4_chain', issue: 'node', rotate: 'credential' } as const satisfies Record<Verb, ListedType>;

/** Each page asks first, or shows what it will do. */
function placeOf(verb: Verb, id: string): ResourceLinkTarget {
  switch (verb) {
    case 'deploy':
      return { to: '/chains/$id', params: { id } };
    case 'issue':
      return { to: '/nodes/$id', params: { id }, search: { dialog: 'psk' } };
    case 'rotate':
      return { to: '/credentials/$id/rotate', params: { id } };
    default:
      return verb satisfies never;
  }
}

/** @throws Refusal */
export async function find(wanted: Wanted, isAdmin: boolean, signal: AbortSignal): Promise<readonly Found[]> {
  const { verb, q, port } = wanted;
  if (verb !== undefined) return findFor(verb, q, signal);
  if (q === '') return [];
  const types = listedTypes.filter((type) => isAdmin || !forAdmins.includes(type));
  const all = types.map((type) => findOfType(type, q, signal));
  return (await Promise.all([...all, findSets(q), port === undefined ? [] : findListeners(port, q)])).flat();
}

async function findOfType(type: ListedType, q: string, signal: AbortSignal): Promise<readonly Found[]> {
  const { items } = await findIn(type, { q, page_size: shown }, signal);
  const hint = typeNames[type] ?? type;
  return items.map((item) => ({ key: item.id, label: nameOf(item), hint, link: pagesOf(type).one(item.id) }));
}

/** The resources that a verb applies to. */
async function findFor(verb: Verb, q: string, signal: AbortSignal): Promise<readonly Found[]> {
  const query = { page_size: 2 * shown, ...(q !== '' && { q }) };
  const { items } = await findIn(typeOf[verb], query, signal);
  // A REALITY credential has its key in another one.
  const fitting = items.filter((item) => !('key_type' in item) || item.key_type !== 'reality');
  return fitting.map((item) => ({
    key: `${verb} ${item.id}`,
    label: text.verbs[verb](nameOf(item)),
    hint: text.actions,
    link: placeOf(verb, item.id),
  }));
}

async function findSets(q: string): Promise<readonly Found[]> {
  const { items } = await queryClient.fetchQuery(setsQuery);
  return items
    .filter(({ set }) => set.toLowerCase().includes(q.toLowerCase()))
    .slice(0, shown)
    .map(({ set }) => ({
      key: `set ${set}`,
      label: set,
      hint: text.set,
      link: { to: '/fleet-file/sets/$set', params: { set } },
    }));
}

const anyPort = portsSearch({});

/** @param q finds only listeners on its address if it has one */
async function findListeners(port: number, q: string): Promise<readonly Found[]> {
  const { items, nodes } = await queryClient.fetchQuery(portsQuery({ ...anyPort, listen_port: port }));
  const host = q.slice(0, Math.max(0, q.lastIndexOf(':')));
  const fitting = items.filter(({ listenAddr }) => host === '' || listenAddr === host).slice(0, shown);
  return fitting.map(({ nodeId, transport, listenAddr, listenPort }) => ({
    key: `${nodeId} ${transport} ${listenAddr} ${listenPort}`,
    label: `${nodes.find(({ id }) => id === nodeId)?.name ?? nodeId} ${formatListener(transport, listenAddr, listenPort)}`,
    hint: text.listener,
    link: { to: '/ports', search: { node_id: nodeId, transport, listen_port: listenPort } },
  }));
}
