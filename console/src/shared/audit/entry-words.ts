/**
 * An audit entry as a sentence: who did what to which resource, and the fields that it changed with their values. Pure; `EntrySentence`
 * shows it with links, and an export as text. Implements "sentences" of `docs/contract/console.md#pages`.
 */
import type { Schemas } from '../api/client.js';
import { actorName } from '../ui/actor.js';
import { formatListener, formatTime } from '../ui/format.js';
import { typeNames } from '../ui/resource-link.js';
import { entryText as text } from './entry.text.js';
import { fieldWords } from './field-words.js';

export type Entry = Pick<
  Schemas['AuditEntry'],
  'action' | 'actor' | 'resource' | 'changes' | 'changes_total' | 'token' | 'reverts'
>;
type Change = Entry['changes'][number];

export interface EntryWords {
  readonly who: string;
  /** `changed endpoint of`, `deployed` */
  readonly did: string;
  /** `upstream`; null where the name alone says it. */
  readonly noun: string | null;
  /** Null for what has no name, such as the settings. */
  readonly name: string | null;
  /** `a:80 → b:80`; null where values say nothing. */
  readonly detail: string | null;
}

/** How many fields are named. */
const named = 3;
const longest = 60;

export function entryWords(entry: Entry): EntryWords {
  const { resource, action, reverts, token, actor } = entry;
  const verb = action.slice(action.indexOf('.') + 1);
  const own = { noun: nounOf(resource.type), name: nameOf(entry) };
  const who = token === null || actor.type === 'system' ? actorName(actor) : text.by(actorName(actor), token.name);
  const { did, detail } =
    verb === 'update' || verb === 'label' ? updated(entry) : { did: didOf(verb), detail: detailOf(entry, verb) };
  if (verb.startsWith('sign_')) return { who, did, noun: null, name: null, detail: null };
  return { who, did: reverts === null ? did : text.undid(did), ...own, detail };
}

/** The whole sentence as text. */
export function entrySentence(entry: Entry): string {
  const { who, did, noun, name, detail } = entryWords(entry);
  const about = [who, did, noun, name].filter((part) => part !== null).join(' ');
  return detail === null ? about : `${about}: ${detail}`;
}

const nounOf = (type: string): string => {
  const noun = typeNames[type] ?? type.replaceAll('_', ' ');
  return /^[A-Z]{2}|^L3|^API/.test(noun) ? noun : noun.charAt(0).toLowerCase() + noun.slice(1);
};

/** A listener policy is named after its listener, which its id holds; the settings have no name. */
function nameOf({ resource: { type, id, name }, changes_total: total, changes }: Entry): string | null {
  if (type === 'connectivity' || type === 'rollout') return null;
  if (type === 'listener_policy') return listenerOf(id ?? name ?? '');
  if (name !== null) return name;
  const about = new Set(changes.flatMap(({ resource }) => resource?.id ?? []));
  return about.size > 1 ? text.several(about.size, total > changes.length) : null;
}

function listenerOf(key: string): string {
  const [, transport = '', host = '', port] = key.split('/');
  return formatListener(transport, host, Number(port));
}

const didOf = (verb: string): string => text.verbs[verb] ?? verb.replaceAll('_', ' ');

function updated({ changes, changes_total: total }: Entry): { readonly did: string; readonly detail: string | null } {
  const fields = [...new Set(changes.map(({ path }) => fieldWords(path)))];
  const [first] = changes;
  if (first === undefined) return { did: text.changed, detail: null };
  if (total === 1) return { did: text.changedFields(fields.join('')), detail: arrow(first) };
  const shown = fields.slice(0, named).join(', ');
  const more = total - named;
  return fields.length <= named && total <= changes.length
    ? { did: text.changedFields(shown), detail: changes.length <= named ? changes.map(withField).join('; ') : null }
    : { did: text.changed, detail: text.fields(shown, more) };
}

const withField = (change: Change): string => `${fieldWords(change.path)} ${arrow(change)}`;
const arrow = ({ before, after }: Change): string => `${valueWords(before)} → ${valueWords(after)}`;

/** The fields that a creation set, or an agent command; the values of other entries are the service's own. */
function detailOf({ changes }: Entry, verb: string): string | null {
  if (verb === 'command') return changes.map(({ after }) => valueWords(after)).join(', ') || null;
  if (verb !== 'create') return null;
  const set = changes.filter(
    ({ path, after }) =>
      !isName(path) && !isUnset(after) && after !== masked && typeof after !== 'object' && !isId(after),
  );
  const shown = set.slice(0, named).map(({ path, after }) => `${fieldWords(path)} ${valueWords(after)}`);
  return shown.length === 0 ? null : shown.join(', ');
}

/** Whether the sentence names the resource by this field. */
const isName = (path: string): boolean => path === 'name' || path === 'username';
/** What the API shows in place of a secret. */
const masked = '***';

const isUnset = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  value === '' ||
  value === false ||
  (Array.isArray(value) && value.length === 0);

const isId = (value: unknown): boolean =>
  typeof value === 'string' && /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/.test(value);

/** An id says nothing to a reader, and one field of a target says where traffic ends. */
export function valueWords(value: unknown): string {
  if (isId(value)) return text.other;
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return formatTime(value);
  if (typeof value === 'object' && value !== null && 'endpoint' in value) return String(value.endpoint);
  if (typeof value === 'object' && value !== null && 'upstream_id' in value) return text.upstream;
  if (value === true) return text.on;
  if (value === false) return text.off;
  if (isUnset(value)) return text.none;
  const words = Array.isArray(value) && value.every((one) => typeof one !== 'object') ? value.join(', ') : value;
  const plain = typeof words === 'object' ? JSON.stringify(words) : String(words);
  return plain.length > longest ? `${plain.slice(0, longest - 1)}…` : plain;
}
