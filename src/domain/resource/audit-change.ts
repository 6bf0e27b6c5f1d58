/**
 * One event as the audit shows it: verb, changes, and why it cannot be reverted. Declarations say this for their events; the
 * lifecycle of all resources is here. `audit/describe.ts` makes entries of whole commands.
 * Implements `docs/contract/rest.md#audit`.
 */
import type { Json, JsonObject } from '../../kernel/json.js';
import type { Changes } from './change.js';

export interface AuditChange {
  readonly path: string;
  readonly before: Json;
  readonly after: Json;
  /** Only in an entry about several resources; `name` is null when the event has none. */
  readonly resource?: { readonly type: string; readonly id: string | null; readonly name: string | null };
}

export const auditVerbs = [
  'create',
  'update',
  'delete',
  'deploy',
  'psk',
  'refresh',
  'command',
  'sign_in',
  'sign_in_refused',
  'sign_out',
  'revert',
  'stop',
  'resume',
  'apply',
  'label',
  'pause',
  'advance',
  'complete',
  'release',
  'rotate',
  'retire',
  'psk_candidate',
  'confirm',
] as const;
export type AuditVerb = (typeof auditVerbs)[number];

export interface EventAudit {
  /** The action is `<resource type>.<verb>`. */
  readonly verb: AuditVerb;
  readonly changes: readonly AuditChange[];
  /** A sentence, or null for an event that a revert can undo. */
  readonly notRevertibleBecause: string | null;
}

/** Stands for a secret. */
export const masked = '***';

/** @param changes may be a function, because the audit's read model needs only the verb */
export function eventAudit(
  verb: AuditVerb,
  changes: readonly AuditChange[] | (() => readonly AuditChange[]),
  notRevertibleBecause: string | null = null,
): EventAudit {
  return {
    verb,
    get changes() {
      return typeof changes === 'function' ? changes() : changes;
    },
    notRevertibleBecause,
  };
}

export function fieldChanges(changes: Changes): readonly AuditChange[] {
  return Object.entries(changes).flatMap(([path, { from, to }]) => fieldChange(path, from, to));
}

/** A change of a list of objects is one per field of its entries, `hops[0].listen_port`, unless their number changed. */
export function fieldChange(path: string, before: Json, after: Json): readonly AuditChange[] {
  if (!isOfEntries(before) || !isOfEntries(after) || before.length !== after.length) return [{ path, before, after }];
  return before.flatMap((from, index) => {
    const to = after[index] ?? {};
    const members = [...new Set([...Object.keys(from), ...Object.keys(to)])];
    return members
      .filter((member) => JSON.stringify(from[member]) !== JSON.stringify(to[member]))
      .map((member) => ({
        path: `${path}[${index}].${member}`,
        before: from[member] ?? null,
        after: to[member] ?? null,
      }));
  });
}

const isOfEntries = (value: Json): value is readonly JsonObject[] =>
  Array.isArray(value) && value.every((entry) => typeof entry === 'object' && entry !== null);

/** The fields of a created resource. */
export function addedFields(fields: object): readonly AuditChange[] {
  return flat(fields).map(([path, after]) => ({ path, before: null, after }));
}

/** The fields of a deleted resource. */
export function removedFields(fields: object): readonly AuditChange[] {
  return flat(fields).map(([path, before]) => ({ path, before, after: null }));
}

/** One entry per field, and one per key of `labels`. */
function flat(fields: object): readonly [string, Json][] {
  const entries: [string, Json][] = [];
  for (const [field, value] of Object.entries(fields)) {
    if (field !== 'labels') entries.push([field, value as Json]);
    else for (const [key, label] of Object.entries(value as object)) entries.push([`labels.${key}`, label as Json]);
  }
  return entries;
}

type AuditOf<D = object> = (event: { readonly data: D }) => EventAudit;

/** @param fields the definition's fields; the audit shows no others, and in the order of the event */
export function lifecycleAudit(fields: readonly string[]): {
  readonly created: AuditOf;
  readonly updated: AuditOf<{ readonly changes: Changes }>;
  readonly deleted: AuditOf;
  readonly restored: AuditOf;
} {
  const shown = new Set(fields);
  const definition = (data: object): object =>
    Object.fromEntries(Object.entries(data).filter(([field]) => shown.has(field)));
  const created: AuditOf = ({ data }) => eventAudit('create', () => addedFields(definition(data)));
  return {
    created,
    updated: ({ data }) => eventAudit('update', () => fieldChanges(data.changes)),
    deleted: ({ data }) => eventAudit('delete', () => removedFields(definition(data))),
    // Its entry has the verb `revert`.
    restored: created,
  };
}
