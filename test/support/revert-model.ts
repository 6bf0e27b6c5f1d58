/**
 * A model of reverts that knows neither events nor commands: a fleet as plain fields, what each entry changed of them, and
 * who changed each field last. It predicts what a revert does, or which entries are in its way.
 */
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { resources, resourceTypes } from '../../src/domain/fleet/resources.js';
import { canonicalJson } from '../../src/kernel/json.js';

/** `<type>/<id>` → field → value as canonical JSON. */
export type Fields = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** What operators described, one field each; a label and a node's override are fields of their own. */
export function fieldsOf(fleet: Fleet): Fields {
  const all = new Map<string, Map<string, string>>();
  for (const type of resourceTypes) {
    for (const state of fleet.tables[type].values()) {
      const fields = new Map<string, string>();
      for (const field of resources[type].fields) {
        const value: unknown = Reflect.get(state, field);
        if (field !== 'labels') fields.set(String(field), canonicalJson(value));
        else
          for (const [key, label] of Object.entries(value as object)) fields.set(`labels.${key}`, canonicalJson(label));
      }
      const deployed: unknown = Reflect.get(state, 'deployed');
      if (typeof deployed === 'object' && deployed !== null) {
        const { payload, hops, target } = deployed as { payload: unknown; hops: unknown; target: unknown };
        fields.set('deployed', canonicalJson({ payload, hops, target }));
      }
      all.set(`${type}/${state.id}`, fields);
    }
  }
  const { version: _, updated_at: __, nodes, ...globals } = fleet.singletons.connectivity.value;
  const settings = new Map(Object.entries(globals).map(([field, value]) => [field, canonicalJson(value)]));
  for (const [id, override] of Object.entries(nodes)) settings.set(`nodes.${id}`, canonicalJson(override));
  return all.set('connectivity/connectivity', settings);
}

interface Change {
  readonly subject: string;
  readonly field: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

export interface Entry {
  readonly id: string;
  /** What it is about; several of a command about several nodes. */
  readonly subjects: readonly string[];
  /** By an operator, and not as a revert. */
  readonly isWork: boolean;
  /** undefined when its kind can be reverted. */
  readonly never: string | undefined;
  readonly changes: readonly Change[];
  readonly kind: 'created' | 'deleted' | 'changed';
}

export type Prediction =
  /** Accepted with these fields afterwards, or refused by an ordinary rule. */
  | { readonly kind: 'accepted'; readonly fields: Fields }
  /** Refused with a sentence that holds all of these. */
  | { readonly kind: 'refused'; readonly says: readonly string[] };

export class RevertModel {
  readonly entries: Entry[] = [];
  readonly #revertedBy = new Map<string, string>();
  readonly #lastChange = new Map<string, string>();
  /** What brought a subject into being last: it gave every field its value, those that are absent included. */
  readonly #cameWith = new Map<string, string>();
  #fields: Fields = new Map();

  constructor(initial: Fields) {
    this.#fields = initial;
  }

  /** Notes an accepted command. @param redeploys it may set a field to the value that it has */
  accepted(
    given: Pick<Entry, 'id' | 'subjects' | 'isWork' | 'never'> & {
      readonly reverts?: string;
      readonly redeploys: boolean;
    },
    after: Fields,
  ): void {
    const { id, redeploys, reverts } = given;
    const [subject = ''] = given.subjects;
    const changes = differences(this.#fields, after);
    const deployed = after.get(subject)?.get('deployed');
    if (redeploys && changes.length === 0)
      changes.push({ subject, field: 'deployed', before: deployed, after: deployed });
    const [was, is] = [this.#fields.has(subject), after.has(subject)];
    this.entries.push({ ...given, changes, kind: was && !is ? 'deleted' : !was && is ? 'created' : 'changed' });
    for (const change of changes) this.#lastChange.set(`${change.subject} ${change.field}`, id);
    for (const here of after.keys()) if (!this.#fields.has(here)) this.#cameWith.set(here, id);
    if (reverts !== undefined) this.#revertedBy.set(reverts, id);
    this.#fields = after;
  }

  isReverted(id: string): boolean {
    return this.#standing(id) !== undefined;
  }

  prediction(entry: Entry): Prediction {
    const refused = (...says: readonly string[]): Prediction => ({ kind: 'refused', says });
    if (entry.never !== undefined) return refused('cannot be reverted', entry.never);
    const by = this.#standing(entry.id);
    if (by !== undefined) return refused(`was reverted by the entry ${by}`);
    const gone = entry.subjects.filter((subject) => !this.#fields.has(subject));
    if (entry.kind === 'deleted') return gone.length === 0 ? refused('exists again') : this.#undone(entry);
    const whyGone = gone.flatMap((subject) => ['is gone', this.#whoDeleted(subject)]);
    if (gone.length === entry.subjects.length) return refused(...whyGone);
    if (entry.kind === 'created') {
      const later = this.entries.slice(this.entries.indexOf(entry) + 1);
      const work = later.filter(
        (one) => one.subjects.includes(entry.subjects[0]!) && one.isWork && one.kind !== 'deleted',
      );
      const inTheWay = work.filter((one) => this.#standing(one.id) === undefined);
      if (inTheWay.length > 0) return refused('later work', ...inTheWay.slice(0, 10).map(({ id }) => id));
      return this.#undone(entry);
    }
    const present = entry.changes.filter(({ subject }) => !gone.includes(subject));
    const conflicts = present.filter((change) => this.#now(change) !== change.after);
    if (conflicts.length + gone.length > 0) {
      return refused(
        ...whyGone,
        ...conflicts.flatMap(({ subject, field }) => [`${field}: is now `, this.#whoSet(subject, field)]),
      );
    }
    return this.#undone(entry);
  }

  #now({ subject, field }: Change): string | undefined {
    return this.#fields.get(subject)?.get(field);
  }

  /** The fields with everything that the entry changed as it was before. */
  #undone(entry: Entry): Prediction {
    const next = new Map([...this.#fields].map(([subject, fields]) => [subject, new Map(fields)]));
    for (const { subject, field, before } of entry.changes) {
      const fields = next.get(subject) ?? new Map<string, string>();
      next.set(subject, fields);
      if (before === undefined) fields.delete(field);
      else fields.set(field, before);
    }
    // The delete of a node takes along what came after its creation too.
    if (entry.kind === 'created') {
      const [subject = ''] = entry.subjects;
      next.delete(subject);
      const nodeId = subject.replace('node/', '');
      for (const subject of next.keys()) if (subject.startsWith(`listener_policy/${nodeId}/`)) next.delete(subject);
      next.get('connectivity/connectivity')?.delete(`nodes.${nodeId}`);
    }
    return { kind: 'accepted', fields: next };
  }

  #standing(id: string): string | undefined {
    const by = this.#revertedBy.get(id);
    return by === undefined || this.#standing(by) !== undefined ? undefined : by;
  }

  #whoSet(subject: string, field: string): string {
    const candidates = [this.#lastChange.get(`${subject} ${field}`), this.#cameWith.get(subject)];
    return this.entries.findLast(({ id }) => candidates.includes(id))?.id ?? 'nobody';
  }

  #whoDeleted(subject: string): string {
    const changes = [...this.#lastChange].filter(([field]) => field.startsWith(`${subject} `)).map(([, id]) => id);
    return this.entries.findLast(({ id }) => changes.includes(id))?.id ?? 'is gone';
  }
}

function differences(before: Fields, after: Fields): Change[] {
  const changes: Change[] = [];
  for (const subject of new Set([...before.keys(), ...after.keys()])) {
    const [from, to] = [before.get(subject), after.get(subject)];
    for (const field of new Set([...(from?.keys() ?? []), ...(to?.keys() ?? [])])) {
      if (from?.get(field) === to?.get(field)) continue;
      changes.push({ subject, field, before: from?.get(field), after: to?.get(field) });
    }
  }
  return changes;
}
